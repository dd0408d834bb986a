"""An image with a few other files: overlaid by mounts, with the layers' own records of sizes
altered alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentbox.core.paths import CHECKOUT, Paths
from agentbox.plan.model import Plan
from agentbox.plan.render.files import config_layer
from agentbox.plan.render.skills import plan_skills

BOX = Paths()
SITE = "/opt/agentbox/venv/lib/python3.13/site-packages"
Records = Mapping[str, Mapping[str, Any]]  # file name below share/files -> its content


def lay_over(folder: Path, records: Records, files: Mapping[str, bytes]) -> list[str]:
    """Writes `files` (by box path) below `folder`; returns the compose mounts. Phase B6 finds a
    consistent image. Fails for a path that the image does not have: a test would alter nothing."""
    if not files:
        return []
    changed = {
        name: content
        for name, record in records.items()
        if (content := _resized(record, files)) is not None
    }
    known = {
        path
        for record in records.values()
        for package in record["packages"].values()
        for path in package["files"]
    }
    assert set(files) <= known, f"the image has no {sorted(set(files) - known)}"
    mounts = []
    for path, content in {
        **files,
        **{f"{BOX.layer_files}/{name}": text for name, text in changed.items()},
    }.items():
        source = folder / "overlay" / path.lstrip("/")
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_bytes(content)
        source.chmod(0o755)
        mounts.append(f"./overlay/{path.lstrip('/')}:{path}:ro")
    return mounts


def _resized(record: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes | None:
    """The record with the sizes of these files, None when it names none of them."""
    copy = json.loads(json.dumps(record))
    touched = False
    for package in copy["packages"].values():
        for path in set(files) & set(package["files"]):
            package["size"] += len(files[path]) - package["files"][path]
            package["files"][path] = len(files[path])
            touched = True
    return json.dumps(copy).encode() if touched else None


def baked(plan: Plan, manifest: str) -> dict[str, bytes]:
    """The files that an image built from this plan would have: its programs and probes."""
    lock = (CHECKOUT / "agentbox.lock").read_bytes()
    layer = config_layer(plan, manifest=manifest.encode(), lock=lock, skills=plan_skills(plan))
    return {str(path): layer[str(path)] for path in (BOX.plan, BOX.probes, BOX.supervisord_conf)}


def module(name: str, old: str, new: str) -> dict[str, bytes]:
    """A module of ours with one piece of its source replaced. Its compiled form is emptied, so that the source counts."""
    relative = f"{name.replace('.', '/')}.py"
    source = (CHECKOUT / relative).read_text()
    assert source.count(old) == 1, f"{relative} holds the piece {source.count(old)} times: {old!r}"
    path = Path(SITE) / relative
    compiled = path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"
    return {str(path): source.replace(old, new).encode(), str(compiled): b""}
