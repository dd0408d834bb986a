"""What a killed command or a crashed box left behind: half-written files, a held lock, a record of a box that is gone."""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from agentbox.core.files.atomic_text import told
from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Repair, Row
from agentbox.host.engines.docker.daemon import start_ticks

NAME = "leftovers"
TITLE = "nothing is left over from a command or a box that was killed"
_DAEMON = "dockerd.json"  # agentbox.host.engines.docker.daemon


def look(host: Host) -> Iterator[Row]:
    yield _lock(host.state.folder / "up.lock")
    yield _half_written(host.state.folder)
    yield _record(host)
    yield from _daemon(host.paths.state_root / _DAEMON)


def _lock(path: Path) -> Row:
    """The kernel lets go of it with its holder, so one that is held has a living holder, and no file need be removed."""
    if not path.exists():
        return Row(check=NAME, subject="lock", state="good", said="no command holds the box")
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 16, 0).decode("ascii", "replace").strip() or "unknown"
        return Row(check=NAME, subject="lock", state="note", said=f"another agentbox command is at the box (pid {holder})",
                   advice="Wait until it ends, or stop it; the lock goes with it.")  # fmt: skip
    finally:
        os.close(descriptor)
    return Row(check=NAME, subject="lock", state="good", said="no command holds the box")


def _half_written(folder: Path) -> Row:
    found = sorted(folder.glob(".*.new")) if folder.exists() else []
    if not found:
        return Row(check=NAME, subject="files", state="good", said="no half-written file")
    names = ", ".join(path.name for path in found)
    return Row(
        check=NAME, subject="files", state="warning", said=f"half-written by a command that was killed: {names}",
        advice=f"Remove them from {folder}; they are never read.",
        repair=Repair(f"Remove {names} from {folder}?", partial(_remove, found)),
    )  # fmt: skip


def _record(host: Host) -> Row:
    if host.record is None:
        return Row(check=NAME, subject="box", state="good", said="no box was started, or it was taken down")
    if host.contained and host.daemon.state != "answers":
        return Row(check=NAME, subject="box", state="unknown", said="the engine does not answer: whether the box runs is not known")  # fmt: skip
    now = host.engine.inspect(host.record)
    if now.state == "running":
        return Row(check=NAME, subject="box", state="good", said="the box of the last start runs")
    return Row(check=NAME, subject="box", state="warning", said=f"the box of the last start is {now.state}, code {now.exit_code}",
               advice="`agentbox up` boots it again, `agentbox logs` shows how it ended, `agentbox down` forgets it.")  # fmt: skip


def _daemon(note: Path) -> Iterator[Row]:
    if not note.exists():
        return
    try:
        known = json.loads(note.read_text(encoding="utf-8"))
        lives = start_ticks(int(known["pid"])) == int(known["start_ticks"])
    except (ValueError, TypeError, KeyError):
        lives = False
    if lives:
        yield Row(check=NAME, subject="daemon", state="good", said="the dockerd that agentbox started runs")
        return
    yield Row(
        check=NAME, subject="daemon", state="warning", said=f"{note} tells of a dockerd that is gone",
        advice=f"Remove {note}.", repair=Repair(f"Remove {note}?", partial(_remove, [note])),
    )  # fmt: skip


def _remove(paths: Sequence[Path]) -> str:
    for path in paths:
        with told(f"remove {path}"):
            path.unlink(missing_ok=True)
    return f"removed {', '.join(map(str, paths))}"
