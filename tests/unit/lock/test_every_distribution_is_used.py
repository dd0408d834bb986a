"""Every Python distribution of the image is imported by agentbox, directly or indirectly; prints
the importers.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agentbox.core.paths import CHECKOUT
from agentbox.host.packages.python.pyproject_requirements import read_project
from agentbox.plan.lockfile.reader import parse_lock

# Used without an import in agentbox: distribution -> file that uses it, and the text in it.
NOT_IMPORTED = {
    "starlette": ("config/features/core.toml", '"starlette"'),  # the probe core-packages imports it
    "sqlite-vec": ("agentbox/adapters/memory/local_sqlite.py", 'find_spec("sqlite_vec")'),
    "wordllama": ("agentbox/adapters/memory/embedder.py", '_release("wordllama")'),  # data files
}


def locked() -> set[str]:
    return {
        row.name for row in parse_lock(CHECKOUT / "agentbox.lock").wheels if "core" in row.features
    }


@cache
def providers() -> dict[str, set[str]]:
    """Top-level import name -> distributions that provide it, in this environment (the same
    versions).
    """
    return {
        name: {str(canonicalize_name(one)) for one in found}
        for name, found in packages_distributions().items()
    }


def imported(files: Iterable[Path]) -> set[str]:
    """The distributions whose packages the files import, anywhere in a file."""
    names = {name.partition(".")[0] for path in files for name in _imports(path)}
    return {one for name in names for one in providers().get(name, ())}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.Call) and _called(node.func).endswith("import_module"):
            yield from (
                arg.value
                for arg in node.args[:1]
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            )


def _called(function: ast.expr) -> str:
    """The last name of what is called."""
    return str(getattr(function, "attr", getattr(function, "id", "")))


@cache
def imported_here() -> set[str]:
    """By agentbox, but for the server of `agentbox mcp`, which has requirements of its own."""
    server = CHECKOUT / "agentbox/host/mcp"
    return imported(
        path for path in (CHECKOUT / "agentbox").rglob("*.py") if not path.is_relative_to(server)
    )


def sources(name: str) -> list[Path]:
    files = distribution(name).files or []
    return [Path(str(file.locate())) for file in files if file.suffix == ".py"]


def test_each_has_an_importer() -> None:
    """From the imports of agentbox, then through the sources of the imported distributions."""
    importer = dict.fromkeys((imported_here() & locked()) | set(NOT_IMPORTED), "agentbox")
    todo = sorted(set(importer) - {"numpy"})  # numpy is large and has no dependencies
    while todo and locked() - set(importer):
        name = todo.pop()
        for found in imported(sources(name)) & locked() - set(importer):
            importer[found] = name
            todo.append(found)
    assert sorted(locked() - set(importer)) == []
    for file, text in NOT_IMPORTED.values():
        assert text in (CHECKOUT / file).read_text(), file


def test_the_server_for_desktop_clients_has_what_it_imports() -> None:
    """`requirements.mcp` beside those of the host."""
    pins = set().union(
        *(
            re.findall(r"^([a-z0-9-]+)==", (CHECKOUT / name).read_text(), re.MULTILINE)
            for name in ("requirements.host", "requirements.mcp")
        )
    )
    found = imported((CHECKOUT / "agentbox/host/mcp").rglob("*.py")) - {"agentbox"}
    assert {"mcp", "pydantic"} <= found
    assert found <= pins


def test_what_is_named_unused_is_neither_imported_nor_locked() -> None:
    """Finds an entry that a later import makes wrong, or that nothing declares any more."""
    for name, dependencies in read_project(CHECKOUT).unused.items():
        declared = {
            canonicalize_name(Requirement(need).name) for need in distribution(name).requires or []
        }
        assert set(dependencies) <= declared, name
        assert not set(dependencies) & imported_here(), name
