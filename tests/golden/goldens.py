"""The golden files: what each manifest in this folder is rendered to, whole. Run this file to write them anew."""

from pathlib import Path

from support.plans import SYSTEM, lock_of

from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import load
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.writer import serialize_lock as lock_bytes
from agentbox.plan.render.files import write
from agentbox.plan.render.targets import ALL, RenderInput, render

HERE = Path(__file__).parent
REFRESH = "python tests/golden/goldens.py"
_IMAGE = f"agentbox:golden@sha256:{'0' * 64}"
_COPIES = ("agentbox.toml", "seccomp/agentbox.json")  # inputs, unchanged


def cases() -> list[Path]:
    """One folder a manifest."""
    return sorted(path.parent for path in HERE.glob("*/agentbox.toml"))


def given(case: Path) -> RenderInput:
    """What a case is rendered from. No rule is asked: a case may want what this release does not serve yet."""
    manifest, features = load(case / "agentbox.toml"), load_features()
    lock = lock_of(enabled_features(manifest, features))
    return RenderInput(
        build_plan(manifest, features, lock_bytes(lock), lock, SYSTEM), manifest.raw, _IMAGE
    )


def rendered(case: Path) -> dict[str, bytes]:
    """Every generated file of a case by relative path."""
    files = render(ALL, given(case))
    return {name: content for name, content in files.items() if name not in _COPIES}


def refresh() -> None:
    """Removes what is no longer rendered, writes the rest."""
    for case in cases():
        files = rendered(case)
        for old in case.iterdir():
            if old.name != "agentbox.toml" and old.name not in files:
                old.unlink()
        write(files, case)


if __name__ == "__main__":
    refresh()
