"""Each derivation sees what its entry modules import, and no more: more would rebuild layers for nothing."""

import ast
import tomllib
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.image.flake_reference import OWN_SKILLS

SOURCES: dict[str, list[str]] = tomllib.loads((CHECKOUT / "nix/sources.toml").read_text())
ENTRIES = {
    "tree": ["agentbox/host/image/tree/__main__.py"],
    "oci": ["agentbox/host/image/oci/layer.py", "agentbox/host/image/oci/archive.py"],
    "made": ["agentbox/host/image/maintainer_scripts/__main__.py"],
    "check": ["agentbox/host/image/check/__main__.py"],
    "sbom": ["agentbox/host/image/sbom/__main__.py"],
    "format": ["agentbox/host/image/source_format.py"],
    "plan": [
        "agentbox/plan/render/build.py",
        "nix/compose_folder.py",
        *(
            str(path.relative_to(CHECKOUT))
            for path in (CHECKOUT / "agentbox/manifest/rules").rglob("*.py")
        ),  # found by name
    ],
}


def covered(path: str, wanted: list[str]) -> bool:
    return any(path == entry or path.startswith(f"{entry}/") for entry in wanted)


def imports(file: str) -> set[str]:
    """The files of this repository that a file imports, at its top or inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((CHECKOUT / file).read_text())):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "agentbox"
        ):
            found |= _files(node.module, [alias.name for alias in node.names])
        if isinstance(node, ast.Import):
            for alias in node.names:
                found |= _files(alias.name, []) if alias.name.split(".")[0] == "agentbox" else set()
    return found


def _files(module: str, names: list[str]) -> set[str]:
    base = module.replace(".", "/")
    candidates = [f"{base}.py", *(f"{base}/{name}.py" for name in names)]
    parts = base.split("/")
    candidates += ["/".join([*parts[:depth], "__init__.py"]) for depth in range(1, len(parts) + 1)]
    return {path for path in candidates if (CHECKOUT / path).is_file()}


def closure(name: str) -> set[str]:
    """Everything that the entry modules reach. A package file that the filter leaves out is
    missing: the package is then a namespace, and its re-exports are not imported."""
    seen: set[str] = set()
    pending = list(ENTRIES[name])
    while pending:
        file = pending.pop()
        if file in seen or (file.endswith("__init__.py") and not covered(file, SOURCES[name])):
            continue
        seen.add(file)
        pending += imports(file)
    return {path for path in seen if path.startswith("agentbox/")}


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_nothing_that_is_imported_is_missing(name: str) -> None:
    """Every file that the entry modules reach is in the filter."""
    reached = closure(name)
    assert len(reached) > 2
    assert sorted(path for path in reached if not covered(path, SOURCES[name])) == []


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_nothing_is_there_that_is_not_imported(name: str) -> None:
    """Every file and every sub-package in the filter is reached."""
    reached = closure(name)
    listed = [entry for entry in SOURCES[name] if entry.startswith("agentbox/")]
    assert [entry for entry in listed if not any(covered(path, [entry]) for path in reached)] == []


def test_every_list_is_used_and_exists() -> None:
    """No list without an entry, no entry of a list that does not exist."""
    assert set(SOURCES) == {*ENTRIES, "application", "formatted", "manifest"}
    assert [
        entry
        for entries in SOURCES.values()
        for entry in entries
        if not (CHECKOUT / entry).exists() and entry != OWN_SKILLS  # only in a copy for a build
    ] == []


def test_the_flake_is_thin() -> None:
    """flake.nix imports one file and contains no text in another language."""
    text = Path(CHECKOUT / "flake.nix").read_text()
    assert len(text.splitlines()) < 60
    assert "''" not in text
