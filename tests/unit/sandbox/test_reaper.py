"""Commands to a reaper whose leader has exited."""

import subprocess
import sys

# The leader was reaped, and its number is another process's by now: one that the order must not reach.
CODE = """
import json, os, signal, socket, sys
from agentbox.sandbox.launcher.order_socket import OrderSocket
from agentbox.sandbox.launcher.reaper import Reaper
near, far = socket.socketpair()
reaper = Reaper()
reaper.control = OrderSocket(far)
child = os.fork()
if child == 0:
    signal.pause()
reaper.leader, reaper.status = child, {status}
near.send(json.dumps({{"do": "signal", "signal": int(signal.SIGKILL)}}).encode() + b"\\n")
reaper._handle_commands()
os.kill(child, signal.SIGTERM)
print(os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL)
"""


def reached(status: str) -> bool:
    """Whether the process of that number got the KILL; `status` is the leader's, None while it
    runs."""
    code = CODE.format(status=status)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=20
    )
    assert done.stdout, done.stderr
    return done.stdout == "True\n"


def test_a_signal_reaches_the_leader() -> None:
    """While it runs: the control of the next test."""
    assert reached("None")


def test_a_signal_never_reaches_a_recycled_pid() -> None:
    """Nothing is sent to a number that the kernel may have reused."""
    assert not reached("0")
