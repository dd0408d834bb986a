"""Signals that come while a call waits for the reaper."""

from agentbox.sandbox.confine import Confinement
from agentbox.testing.confined import EVERYWHERE, answer

FREE = Confinement(grants=(EVERYWHERE,))


def test_a_pipeline_of_a_shell_is_forked_whole() -> None:
    """Its first child ends while it forks the next; the shell has a handler for that."""
    found = answer(
        """
import subprocess
pipeline = ["dash", "-c", "true | true | true"]
said(codes=sorted({subprocess.run(pipeline, stderr=subprocess.DEVNULL).returncode for _ in range(40)}))
""",
        FREE, pids=64,
    )  # fmt: skip
    assert found == {"codes": [0]}


def test_every_other_handler_is_as_it_was_asked_for() -> None:
    """A program that wants the end of a child to interrupt a call gets that."""
    found = answer(
        """
heard = []
signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
libc.read.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    time.sleep(0.3); os._exit(0)
got = libc.read(reading, ctypes.create_string_buffer(1), 1)
said(got=got, why=errno.errorcode[ctypes.get_errno()])
""",
        FREE, pids=64,
    )  # fmt: skip
    assert found == {"got": -1, "why": "EINTR"}
