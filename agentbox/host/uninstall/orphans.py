"""Programs that a killed command started and that still work: they would make things again that an
uninstallation has removed.

Each command names itself in `AGENTBOX_COMMAND` of its environment, as `<pid>:<start ticks>`, which
its programs inherit. A program whose command has ended is an orphan. Process ids are those of one
namespace, so programs in containers are not looked at.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import COMMAND_VARIABLE
from agentbox.host.engines.docker.daemon import MARK, start_ticks
from agentbox.host.uninstall.removal import Kept, Removal

# /proc/<pid>/comm has at most 15 characters.
_STARTED: Final = frozenset(
    {
        *("docker", "docker-compose", "git", "tar"),
        *("nix", "nix-build", "nix-instantiate", "nix-prefetch-ur", "nix-shell", "nix-store"),
        *("node", "npm", "pip", "pip3"),
        *("getfacl", "setfacl", "bwrap", "unshare", "apt-cache", "apt-config", "dpkg-query"),
    }
)
_MODULES: Final = ("pip", "compileall")  # that a Python runs, beside parts of agentbox
_PACKAGE_MANAGER: Final = frozenset({"apt-get", "apt", "dpkg", "dpkg-deb", "http", "https"})
_INSTALL_SECONDS, _STOP_SECONDS, _KILL_SECONDS = 600.0, 10.0, 5.0
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True)
class Orphan:
    """A running program of a command that has ended."""

    pid: int
    ticks: int
    name: str
    argv: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        """True for a program that agentbox starts. Others inherited the name of the command, such
        as an editor or a server of the operator."""
        if not self.name.startswith("python"):
            return self.name in _STARTED | _PACKAGE_MANAGER
        module = self.argv[self.argv.index("-m") + 1 :][:1] if "-m" in self.argv else ()
        return bool(module) and (module[0] in _MODULES or module[0].startswith("agentbox."))

    @property
    def runs(self) -> bool:
        return start_ticks(self.pid) == self.ticks


def find_orphans() -> list[Orphan]:
    """As far as this user may see them; without a dockerd and its programs, which are to stay."""
    return list(_orphans())


def end_orphans(found: list[Orphan]) -> None:
    """Waits for a package manager, which must not be stopped; ends other programs that agentbox
    starts. Raises AgentboxError (exit 7) if one does not end."""
    found = [orphan for orphan in found if orphan.is_ours]
    installing = [orphan for orphan in found if orphan.name in _PACKAGE_MANAGER]
    others = [orphan for orphan in found if orphan not in installing]
    remaining = _wait(installing, _INSTALL_SECONDS)
    for number, seconds in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        for orphan in others:
            _signal(orphan, number)
        others = _wait(others, seconds)
    if left := [*remaining, *others]:
        raise AgentboxError(
            f"cannot uninstall: {left[0].name} (pid {left[0].pid}) of a killed command still runs",
            "Wait until it ends, or stop it.",
            exit_code=ExitCode.BUSY,
        )


def orphan_removals() -> Iterator[Removal | Kept]:
    """The step that ends each, for the plan."""
    for orphan in find_orphans():
        name = f"{orphan.name}, pid {orphan.pid}, of a killed command"
        if orphan.is_ours:
            yield Removal(kind="program", name=name, remove=partial(end_orphans, [orphan]))
        else:
            reason = "agentbox starts no such program"
            yield Kept(kind="program", name=name, reason=reason, foreign=True)


def _orphans() -> Iterator[Orphan]:
    namespace = Path("/proc/self/ns/pid").readlink()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "ns/pid").readlink() != namespace:
                continue  # of a container: its command has an id of another namespace
            variables = dict(
                row.partition(b"=")[::2] for row in (entry / "environ").read_bytes().split(b"\0")
            )
            name = (entry / "comm").read_text().strip()
            argv = tuple((entry / "cmdline").read_text(errors="replace").split("\0"))
        except OSError:  # ended, or another user's
            continue
        command = variables.get(COMMAND_VARIABLE.encode(), b"").decode("ascii", "replace")
        pid, _, ticks = command.partition(":")
        if not (pid.isdigit() and ticks.isdigit()) or MARK.encode() in variables:
            continue
        if start_ticks(int(pid)) != int(ticks):
            yield Orphan(int(entry.name), start_ticks(int(entry.name)), name, argv)


def _signal(orphan: Orphan, number: signal.Signals) -> None:
    if orphan.runs:
        try:
            os.kill(orphan.pid, number)
        except ProcessLookupError:
            return


def _wait(orphans: list[Orphan], seconds: float) -> list[Orphan]:
    """Returns those that still run after that time."""
    deadline = time.monotonic() + seconds
    while remaining := [orphan for orphan in orphans if orphan.runs and orphan.ticks]:
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_SECONDS)
    return remaining
