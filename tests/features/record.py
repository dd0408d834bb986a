"""`bench/results/features.json`: one row a feature, the last run of each; `docs/features.md` follows at once."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from reference import features
from trial import Row

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.features.loader import features_dir

RESULTS = CHECKOUT / "bench/results/features.json"


def record(row: Row, inputs: str, file: Path = RESULTS, page: Path = features.TARGET) -> None:
    """Replaces an earlier row of its feature at once: a result is stored whatever happens
    afterwards. One that ended for lack of disk space does not replace one that did not."""
    rows = _rows(file)
    if row.short and row.feature in rows:
        return
    seen = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": platform.machine(),
        "inputs": inputs,
    }
    rows[row.feature] = {**row.to_json(), **seen}
    lines = (f"{json.dumps(key)}: {json.dumps(rows[key], sort_keys=True)}" for key in sorted(rows))
    _write(file, '{"bench": "features", "rows": {\n' + ",\n".join(lines) + "\n}}\n")
    _write(page, features.page(file))


def stands(every: bool, named: Sequence[str]) -> bool:
    """Whether stored rows count: in a run of all only, which may have been interrupted. Named
    features are always tried, and so is the one that stands for all."""
    return every and not named


def kept(name: str, inputs: str, file: Path = RESULTS) -> Row | None:
    """The row of an earlier trial of the same files on a machine like this one, if there is one."""
    found = _rows(file).get(name, {})
    if (found.get("inputs"), found.get("machine")) != (inputs, platform.machine()):
        return None
    names = {item.name for item in fields(Row)}
    row = Row(**{key: value for key, value in found.items() if key in names})
    row.exceptions, row.without = tuple(row.exceptions), tuple(row.without)
    return row


def inputs_of(on: tuple[str, ...]) -> str:
    """A digest of what decides how a trial with these features ends: their files, their probes, the
    lock, and the builder of images."""
    digest = hashlib.sha256()
    for path in sorted(_files(on)):
        digest.update(
            f"{path.relative_to(CHECKOUT)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return digest.hexdigest()


def _files(on: tuple[str, ...]) -> Iterator[Path]:
    yield from (features_dir() / f"{name}.toml" for name in on)
    yield from (CHECKOUT / name for name in ("agentbox.lock", "flake.nix"))
    for folder, pattern in (
        ("nix", "*.nix"),
        ("config/probes", "*"),
        ("agentbox/host/image", "*.py"),
        ("agentbox/box/probes", "*.py"),
    ):
        yield from (path for path in (CHECKOUT / folder).rglob(pattern) if path.is_file())


def _rows(file: Path) -> dict[str, Mapping[str, Any]]:
    return dict(json.loads(file.read_text())["rows"]) if file.exists() else {}


def _write(file: Path, text: str) -> None:
    fresh = file.with_name(file.name + ".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)
