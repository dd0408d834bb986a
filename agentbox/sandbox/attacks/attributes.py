"""Mode, times, owner and attributes of files that are not the agent's: one user owns them all, so only a layer can say no.

Each try writes back what is there, so that one that passes does no harm.
"""

import os
import stat
import sys
from typing import Final

from agentbox.sandbox.attacks.attempts import each
from agentbox.sandbox.attacks.line import Absent, Facts, Table

TABLE = Table("attributes")
_HELD: Final = {"EACCES": "reaper", "EPERM": "reaper"}
_TESTS: Final = ("tests/unit/attack/test_battery.py::test_nothing_gets_through",)


@TABLE.line("mode", "changes the mode of the control plane's files and folders", _HELD, tests=_TESTS)
def _mode(facts: Facts) -> str:
    return each(lambda path: os.chmod(path, stat.S_IMODE(os.stat(path).st_mode)), _targets(facts))


@TABLE.line("times", "changes the times of the control plane's files and folders", _HELD, tests=_TESTS)
def _times(facts: Facts) -> str:
    def touch(path: str) -> None:
        found = os.stat(path)
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))

    return each(touch, _targets(facts))


@TABLE.line("owner", "changes the group of the control plane's files", _HELD, tests=_TESTS)
def _owner(facts: Facts) -> str:
    def give(path: str) -> None:
        group = os.stat(path).st_gid
        os.chown(path, -1, group + 1)
        os.chown(path, -1, group)

    return each(give, _targets(facts))


@TABLE.line(
    "attributes", "sets extended attributes of the control plane's files", _HELD | {"ENOTSUP": "reaper"}, tests=_TESTS
)
def _attributes(facts: Facts) -> str:
    def mark(path: str) -> None:
        os.setxattr(path, "user.agentbox", b"x")
        os.removexattr(path, "user.agentbox")

    return each(mark, _targets(facts))


@TABLE.line("by-descriptor", "changes mode and times of what it may only read, through a descriptor that reads", _HELD,
            tests=("tests/unit/sandbox/test_attributes.py::test_a_descriptor_that_reads_changes_nothing",))  # fmt: skip
def _by_descriptor(_facts: Facts) -> str:
    def again(path: str) -> None:
        held = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = os.fstat(held)
            os.fchmod(held, stat.S_IMODE(found.st_mode))
            os.utime(held, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(held)

    return each(again, (sys.executable, "/etc/passwd", "/usr/bin"))


@TABLE.line("neighbour-mode", "closes another agent's folder to it", _HELD, tests=_TESTS)
def _neighbour_mode(facts: Facts) -> str:
    if not facts.neighbour.home:
        raise Absent("no neighbour")
    home = facts.neighbour.home
    return each(lambda path: os.chmod(path, stat.S_IMODE(os.stat(path).st_mode)), (home, f"{home}/secret"))


def _targets(facts: Facts) -> tuple[str, ...]:
    return (*facts.secrets, facts.writable)
