"""The golden files: the rendered targets of each manifest in this directory, complete for
`default`, as differences from that for the others. Run this file to write them again."""

import json
from pathlib import Path

from differences import apply_json_patch, apply_text_diff, json_patch, json_text, text_diff
from support.plans import SYSTEM, lock_of

from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import load
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.writer import serialize_lock as lock_bytes
from agentbox.plan.render.files import write
from agentbox.plan.render.targets import ALL, RenderInput, render

HERE = Path(__file__).parent
DEFAULT = HERE / "default"
REFRESH = "python tests/golden/goldens.py"
_IMAGE = f"agentbox:golden@sha256:{'0' * 64}"
_PATCH, _DIFF = ".jsonpatch", ".diff"
_JSON = ("plan.json", "probes.json", "security-report.json")  # in the form of `json_text`
_COPIES = ("agentbox.toml", "seccomp/agentbox.json")  # inputs, unchanged


def cases() -> list[Path]:
    """One directory per manifest."""
    return sorted(path.parent for path in HERE.glob("*/agentbox.toml"))


def given(case: Path) -> RenderInput:
    """The input that a case is rendered from. No rule is checked: a case may use what this release
    does not support yet."""
    manifest, features = load(case / "agentbox.toml"), load_features()
    lock = lock_of(enabled_features(manifest, features))
    return RenderInput(
        build_plan(manifest, features, lock_bytes(lock), lock, SYSTEM), manifest.raw, _IMAGE
    )


def rendered(case: Path) -> dict[str, bytes]:
    """Every generated file of a case by relative path."""
    files = render(ALL, given(case))
    return {name: content for name, content in files.items() if name not in _COPIES}


def stored(case: Path) -> dict[str, str]:
    """Every file that a case has to be rendered to, by relative path. Raises what `differences` raises."""
    whole = {path.name: path.read_text() for path in _golden_files(DEFAULT)}
    if case == DEFAULT:
        return whole
    return {name: _applied(name, text, case) for name, text in whole.items()}


def _applied(name: str, text: str, case: Path) -> str:
    patch, diff = case / f"{name}{_PATCH}", case / f"{name}{_DIFF}"
    if patch.exists():
        return apply_json_patch(text, patch.read_text())
    return apply_text_diff(text, diff.read_text()) if diff.exists() else text


def golden_texts(case: Path) -> dict[str, str]:
    """What `refresh` writes of a case: file name -> text."""
    whole = {name: content.decode() for name, content in rendered(case).items()}
    if case == DEFAULT:
        return whole
    base = {name: content.decode() for name, content in rendered(DEFAULT).items()}
    assert whole.keys() == base.keys()
    changed = {name: _difference(name, base[name], text) for name, text in whole.items()}
    return {f"{name}{suffix}": text for name, (suffix, text) in changed.items() if text}


def _difference(name: str, old: str, new: str) -> tuple[str, str]:
    if name not in _JSON:
        return _DIFF, text_diff(old, new)
    assert all(json_text(json.loads(text)) == text for text in (old, new)), f"form of {name}"
    return _PATCH, json_patch(old, new)


def golden_file(case: Path, name: str) -> Path:
    """Where a rendered file is read from: its own file, its differences, or that of `default` if
    there are none."""
    kept = (case / name, case / f"{name}{_PATCH}", case / f"{name}{_DIFF}", DEFAULT / name)
    return next(path for path in kept if path.exists())


def _golden_files(case: Path) -> list[Path]:
    return [path for path in case.iterdir() if path.name != "agentbox.toml"]


def refresh() -> None:
    """Removes what is no longer rendered, writes the rest."""
    for case in cases():
        files = golden_texts(case)
        for old in _golden_files(case):
            if old.name not in files:
                old.unlink()
        write({name: text.encode() for name, text in files.items()}, case)


if __name__ == "__main__":
    refresh()
