"""Switching to the box's user."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.process.privilege_drop import BOX_UID, become_box_user, require_readable


def test_rights_are_gone_for_good() -> None:
    """In the child: no-new-privs; as root also uid and gid 1000, no groups, all capability sets
    empty.
    """
    done = subprocess.run(
        ["cat", "/proc/self/status"],
        preexec_fn=become_box_user,
        capture_output=True,
        text=True,
        check=True,
    )
    status = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    if os.geteuid() == 0:
        assert status["Uid"].split() == [str(BOX_UID)] * 4
        assert status["Gid"].split() == [str(BOX_UID)] * 4
        assert status["Groups"].strip() == ""
        assert {
            int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
        } == {0}


# Removes CAP_SETPCAP (8) from the effective and permitted sets with capset(2), then switches to the
# box's user.
WITHOUT_SETPCAP = """
import ctypes, os
from agentbox.host.engines.process.privilege_drop import become_box_user
libc = ctypes.CDLL(None, use_errno=True)
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
data = (ctypes.c_uint32 * 6)()
assert libc.capget(header, data) == 0
data[0] &= ~(1 << 8)
data[1] &= ~(1 << 8)
assert libc.capset(header, data) == 0
try:
    become_box_user()
except OSError as error:
    print(error.errno, error.strerror, os.getuid())
"""


def test_a_right_that_does_not_go_is_an_error() -> None:
    """As root without CAP_SETPCAP the bounding set remains: the error names the step."""
    if os.geteuid() == 0:
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_SETPCAP], capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{errno.EPERM} prctl(PR_CAPBSET_DROP) 0\n"


def test_a_closed_place_is_named(tmp_path: Path) -> None:
    """The error names a directory that uid 1000 cannot enter, and the step that restricts it."""
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0o700)
    if closed.stat().st_uid == BOX_UID:
        closed.chmod(0o077)
    with pytest.raises(AgentboxError) as caught:
        require_readable([closed / "inner"])
    assert caught.value.exit_code is ExitCode.PREREQUISITE
    assert str(closed / "inner") in caught.value.message
    require_readable([Path("/usr/bin")])
