"""One feature, for real: locked, built, booted in a container, probed, weighed, and every trace removed."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cli_box import PYTHON, CliBox, Ran, wait_for
from manifests import Wanted
from room import free_bytes, locked_bytes, needed_bytes, too_little

from agentbox.core.paths import CHECKOUT
from agentbox.host.image.archive import read_archive
from agentbox.host.packages.lock_inputs import host_system
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.features.model import Feature
from agentbox.plan.lockfile.reader import parse_lock

FEATURES = load_features()
_SIZES = """
import json, pathlib
found = {}
for file in pathlib.Path('/opt/agentbox/share/files').glob('f-*.json'):
    found[file.stem] = sum(row['size'] for row in json.loads(file.read_bytes())['packages'].values())
print(json.dumps(found))
"""
_LOCK_SECONDS, _BUILD_SECONDS, _UP_SECONDS, _PROBE_SECONDS = 900, 3600, 900, 700
_READY_SECONDS = 150  # as `up` configures a box


@dataclass
class Row:
    """The result of a feature. `why`: where it ended, if that was before its probes."""

    feature: str
    exceptions: tuple[str, ...] = ()
    without: tuple[
        str, ...
    ] = ()  # devices that the exceptions grant and this machine lacks: the box started without
    short: bool = False  # not built, for want of disk
    locks: bool = False
    builds: bool = False
    boots: bool = False
    green: bool = False
    why: str = ""
    probes: list[dict[str, Any]] = field(default_factory=list)
    commands: dict[str, bool] = field(default_factory=dict)
    compressed: dict[str, int] = field(default_factory=dict)  # bytes by layer of features
    unpacked: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)  # locked files of it by table of the lock
    locked: int = 0  # bytes of the files that the image has beside those of core
    needs: int = 0  # bytes of free disk that a trial of it needs
    disk: int = 0  # bytes that the disk lost until the box stood, whoever took them
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Ended(Exception):
    """A stage failed; the text is the command's output."""


@dataclass
class Trial:
    """Runs the stages in order in an environment of its own; the first that fails ends it, and the
    row names it."""

    cli_box: CliBox
    feature: Feature
    wanted: Wanted

    def run(self) -> Row:
        """The row. Leaves nothing: no container, volume or image, and no store path of this
        feature."""
        row = Row(self.feature.name, self.wanted.exceptions, self.wanted.absent)
        before = free_bytes()
        try:
            for stage in (self._lock, self._build, self._boot, self._probe):
                stage(row)
                row.disk = max(row.disk, before - free_bytes())
        except Ended as ended:
            row.why = str(ended)
        finally:
            self._clear()
        return row

    def _timed(self, row: Row, name: str, action: Callable[[], Any]) -> Any:
        started = time.monotonic()
        try:
            return action()
        finally:
            row.seconds[name] = round(time.monotonic() - started, 1)

    def _must(self, row: Row, name: str, *words: str, seconds: float) -> str:
        ran = self._timed(row, name, lambda: self._run(name, *words, seconds=seconds))
        if ran.code != 0:
            said = (ran.err.strip() or ran.out.strip()).splitlines()
            raise Ended(f"{name}: " + " ".join(line.strip() for line in said[-6:]))
        return str(ran.out)

    def _run(self, name: str, *words: str, seconds: float) -> Ran:
        try:
            return self.cli_box(*words, timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise Ended(f"{name}: not within {seconds:.0f} s") from late

    def _lock(self, row: Row) -> None:
        lock = self.cli_box.folder / "agentbox.lock"
        shutil.copyfile(CHECKOUT / "agentbox.lock", lock)
        self._must(row, "lock", "lock", seconds=_LOCK_SECONDS)
        row.locks = True
        found = parse_lock(lock)
        row.locked = locked_bytes(found, host_system())
        for table, entries in found.tables():
            mine = [entry for entry in entries if row.feature in getattr(entry, "features", ())]
            row.files[table] = len(mine)

    def _build(self, row: Row) -> None:
        row.needs = needed_bytes(row.locked)
        if why := too_little(row.locked, free_bytes()):
            row.short = True
            raise Ended(f"build: {why}")
        self._must(row, "build", "build", seconds=_BUILD_SECONDS)
        row.builds = True
        layers = read_archive((self.cli_box.state / "image").resolve()).layers
        row.compressed = {layer.name: layer.size for layer in layers if layer.name.startswith("f-")}

    def _boot(self, row: Row) -> None:
        if self.wanted.deprived:
            self._must(row, "up", "up", "--yes", "--no-wait", seconds=_UP_SECONDS)
            self._timed(row, "wait", self._wait)
        else:
            self._must(row, "up", "up", "--yes", seconds=_UP_SECONDS)
        row.boots = True
        row.unpacked = json.loads(self.cli_box.inside(PYTHON, "-I", "-c", _SIZES))

    def _wait(self) -> None:
        """Until the box reports nothing missing but what needs a device that is absent."""
        try:
            wait_for(lambda: not self._missing(), _READY_SECONDS, "ready but for devices")
        except AssertionError as late:
            raise Ended(f"up: {late}: {', '.join(self._missing())}") from late

    def _missing(self) -> list[str]:
        """What the box lacks and should not."""
        excused = {
            f"artifact:{probe['id']}"
            for name in self.wanted.deprived
            for probe in FEATURES[name].probes
        }
        return [said for said in self.cli_box.status()["missing"] if said.split()[0] not in excused]

    def _probe(self, row: Row) -> None:
        words = ("--json", "verify", "--probes")
        ran = self._timed(
            row, "probes", lambda: self._run("probes", *words, seconds=_PROBE_SECONDS)
        )
        row.probes = [probe for probe in ran.json if probe["feature"] == row.feature]
        for command in self.feature.commands:
            row.commands[command] = (
                self.cli_box("run", "--", "bash", "-c", f"command -v {command}").code == 0
            )
        failed = [
            f"{probe['id']}: {probe['detail']}"
            for probe in ran.json
            if not probe["passed"] and probe["required"] and self._counts(probe["feature"])
        ]
        failed += [
            f"agents have no command {name}" for name, found in row.commands.items() if not found
        ]
        if wrong := failed or self._missing():
            raise Ended(f"probes: {'; '.join(wrong)}")
        row.green = True

    def _counts(self, feature: str) -> bool:
        """Probes of another feature whose devices are absent are no result of this one."""
        return feature == self.feature.name or feature not in self.wanted.deprived

    def _clear(self) -> None:
        link = self.cli_box.state / "image"
        archive = link.resolve() if link.exists() else None
        image = read_archive(archive).image_id if archive else ""
        self.cli_box.down()
        if archive is not None:
            subprocess.run(
                ["docker", "image", "rm", "--force", image], capture_output=True, check=False
            )
            shutil.rmtree(self.cli_box.state)
            forget(archive)


def forget(archive: Path) -> None:
    """Deletes from the store the archive and the trees and layers of features that it was built
    from; what another build still needs stays, since the store refuses."""
    deriver = _store("--query", "--deriver", str(archive)).strip()
    needed = _store("--query", "--requisites", deriver).splitlines()
    marks = ("-tree-f-", "-layer-f-")
    mine = [
        path for path in needed if path.endswith(".drv") and any(mark in path for mark in marks)
    ]
    outputs = [out for drv in mine for out in _store("--query", "--outputs", drv).splitlines()]
    for path in (str(archive), *outputs):
        subprocess.run(["nix-store", "--delete", path], capture_output=True, check=False)


def _store(*words: str) -> str:
    return subprocess.run(["nix-store", *words], capture_output=True, text=True, check=True).stdout
