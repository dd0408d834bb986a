"""Mode, times, owner and attributes of files of others: all have the same user, so only a layer can
refuse the change.

Each attempt writes the existing values, so that one that passes does no harm.
"""

import os
import stat
import sys
from typing import Final

from agentbox.sandbox.attacks.attempts import run_each
from agentbox.sandbox.attacks.case import AttackGroup, TargetInfo, TargetMissing

SUITE = AttackGroup("attributes")
_BLOCKED: Final = {"EACCES": "reaper", "EPERM": "reaper"}
_TESTS: Final = ("tests/unit/attack/test_battery.py::test_nothing_gets_through",)


@SUITE.case(
    "mode", "changes the mode of the control plane's files and directories", _BLOCKED, tests=_TESTS
)
def _mode(facts: TargetInfo) -> str:
    return run_each(
        lambda path: os.chmod(path, stat.S_IMODE(os.stat(path).st_mode)), _targets(facts)
    )


@SUITE.case(
    "times",
    "changes the times of the control plane's files and directories",
    _BLOCKED,
    tests=_TESTS,
)
def _times(facts: TargetInfo) -> str:
    def touch(path: str) -> None:
        status = os.stat(path)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return run_each(touch, _targets(facts))


@SUITE.case("owner", "changes the group of the control plane's files", _BLOCKED, tests=_TESTS)
def _owner(facts: TargetInfo) -> str:
    def change_group(path: str) -> None:
        group = os.stat(path).st_gid
        os.chown(path, -1, group + 1)
        os.chown(path, -1, group)

    return run_each(change_group, _targets(facts))


@SUITE.case(
    "attributes",
    "sets extended attributes of the control plane's files",
    _BLOCKED | {"ENOTSUP": "reaper"},
    tests=_TESTS,
)
def _attributes(facts: TargetInfo) -> str:
    def mark(path: str) -> None:
        os.setxattr(path, "user.agentbox", b"x")
        os.removexattr(path, "user.agentbox")

    return run_each(mark, _targets(facts))


@SUITE.case(
    "by-descriptor",
    "changes mode and times of read-only files through a read-only descriptor",
    _BLOCKED,
    tests=("tests/unit/sandbox/test_attributes.py::test_a_descriptor_that_reads_changes_nothing",),
)
def _by_descriptor(_facts: TargetInfo) -> str:
    def rewrite(path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(fd)
            os.fchmod(fd, stat.S_IMODE(status.st_mode))
            os.utime(fd, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(fd)

    return run_each(rewrite, (sys.executable, "/etc/passwd", "/usr/bin"))


@SUITE.case(
    "neighbour-mode", "changes the mode of another agent's directory", _BLOCKED, tests=_TESTS
)
def _victim_mode(facts: TargetInfo) -> str:
    if not facts.neighbour.home:
        raise TargetMissing("no victim agent")
    home = facts.neighbour.home
    return run_each(
        lambda path: os.chmod(path, stat.S_IMODE(os.stat(path).st_mode)), (home, f"{home}/secret")
    )


def _targets(facts: TargetInfo) -> tuple[str, ...]:
    return (*facts.secrets, facts.writable)
