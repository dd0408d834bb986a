"""Events that nobody reads are memory that the kernel keeps for an agent: its inotify instances have a most."""

import pytest

from agentbox.sandbox.answers.watching import INSTANCE, LEAST
from agentbox.sandbox.confine import Confinement
from agentbox.testing.confined import EVERYWHERE, answer

MIB = 1 << 20
FREE = Confinement(grants=(EVERYWHERE,))
FLOOD = """
import array, ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def one(flags=0):
    made = libc.inotify_init1(flags)
    if made < 0: raise OSError(ctypes.get_errno(), "")
    return made
def flood():
    made = []
    try:
        while len(made) < 100: made.append(one())
    except OSError as error: return made, errno.errorcode[error.errno]
    return made, "passed"
"""


def flooded(script: str, memory: int) -> dict[str, object]:
    return answer(f"import errno{FLOOD}{script}", FREE, memory=memory)


@pytest.mark.parametrize(("memory", "most"), [(16 * MIB, LEAST), (160 * MIB, 160 * MIB // 4 // INSTANCE)])
def test_instances_end_below_a_quarter_of_the_memory(memory: int, most: int) -> None:
    """When they are closed there is room again."""
    found = flooded("""
made, why = flood()
for one_of_them in made: os.close(one_of_them)
again, _ = flood()
said(made=len(made), why=why, again=len(again))
""", memory)  # fmt: skip
    assert found == {"made": most, "why": "EMFILE", "again": most}


def test_those_under_way_in_a_socket_are_still_there() -> None:
    """Nobody has them open, and they hold as much."""
    found = flooded("""
near, far = socket.socketpair()
made, _ = flood()
socket.send_fds(near, [b"x"], made)
for one_of_them in made: os.close(one_of_them)
hidden, _ = flood()
socket.recv_fds(far, 1, 100)
said(made=len(made), hidden=len(hidden))
""", 160 * MIB)  # fmt: skip
    assert found == {"made": 5, "hidden": 0}


def test_an_instance_does_what_it_does() -> None:
    """It tells of a file; flags are kept, and those that it does not have refused."""
    found = flooded("""
import fcntl, tempfile
told = one(os.O_NONBLOCK | os.O_CLOEXEC)
folder = tempfile.mkdtemp()
libc.inotify_add_watch(told, folder.encode(), 0x100)
open(folder + "/made", "w").close()
try: one(1)
except OSError as error: why = errno.errorcode[error.errno]
flags = bool(fcntl.fcntl(told, fcntl.F_GETFL) & os.O_NONBLOCK), bool(fcntl.fcntl(told, fcntl.F_GETFD))
said(told=b"made" in os.read(told, 1024), flags=flags, old=libc.inotify_init() >= 0, why=why)
""", 160 * MIB)  # fmt: skip
    assert found == {"told": True, "flags": [True, True], "old": True, "why": "EINVAL"}
