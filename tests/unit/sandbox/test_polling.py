"""Watches of epoll are one number for all processes of a user: an agent has a share of them."""

import pytest
from support.confined_process import EVERYWHERE, run_json

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.syscalls.epoll import MIN_WATCHES, WATCH_BYTES

MIB = 1 << 20
FREE = Confinement(grants=(EVERYWHERE,))
FLOOD = """
import errno, fcntl, os, select, socket, threading
def flood(most=20_000):
    made, count = [], 0
    try:
        ends = [os.dup(os.pipe()[0]) for _ in range(100)]
        while count < most:
            made.append(select.epoll())
            for one in ends: made[-1].register(one, 0); count += 1
    except OSError as error: return made, count, errno.errorcode[error.errno]
    return made, count, "passed"
"""


def flooded(script: str, memory: int, user: int = 0) -> dict[str, object]:
    return run_json(f"{FLOOD}{script}", FREE, memory=memory, user=user)


@pytest.mark.parametrize(
    ("memory", "most"), [(1 * MIB, MIN_WATCHES), (16 * MIB, 16 * MIB // 16 // WATCH_BYTES)]
)
def test_watches_end_at_a_share_of_the_memory(memory: int, most: int) -> None:
    """When their instances are closed there is capacity again. Each instance counts as two."""
    found = flooded("""
made, count, why = flood()
for one in made: one.close()
_, again, _ = flood()
said(count=count, why=why, again=again)
""", memory)  # fmt: skip
    assert found == {"count": most - 2 * -(-most // 102), "why": "ENOSPC", "again": found["count"]}


def test_one_instance_may_have_more_watches_than_it_has_files() -> None:
    """A watch is of a file and the number that it had."""
    found = flooded("""
files, one, count = [os.pipe()[0] for _ in range(50)], select.epoll(), 0
try:
    for number in range(500, 600):
        for file in files: os.dup2(file, number); one.register(number, 0); count += 1
except OSError as error: why = errno.errorcode[error.errno]
said(count=count, why=why)
""", 1 * MIB)  # fmt: skip
    assert found == {"count": MIN_WATCHES - 2, "why": "ENOSPC"}


HIDDEN = {
    "in a socket under way": """
near, far = socket.socketpair()
socket.send_fds(near, [b"x"], [one.fileno() for one in made])
""",
    "in a call of a thread": """
def wait(one): one.poll()
for one in made: threading.Thread(target=wait, args=(one,), daemon=True).start()
waiting = lambda: sum("poll" in open(f"/proc/self/task/{task}/wchan").read() for task in os.listdir("/proc/self/task"))
while waiting() < len(made): pass
""",
}


@pytest.mark.parametrize("how", HIDDEN)
def test_an_instance_that_nobody_has_open_still_counts(how: str) -> None:
    """Also where its number is another's by then."""
    found = flooded(f"""
made, count, why = flood()
numbers = [one.fileno() for one in made]
{HIDDEN[how]}
for number in numbers: os.close(number)
_, again, _ = flood()
said(why=why, again=again)
""", 8 * MIB)  # fmt: skip
    assert found == {"why": "ENOSPC", "again": 0}


def test_hundreds_of_instances_of_normal_size_work() -> None:
    """They work as before: flags are kept, events arrive, one may watch another, and a child has
    what it inherits."""
    found = flooded("""
made = []
for _ in range(700):
    reading, writing = os.pipe()
    one = select.epoll(); one.register(reading, select.EPOLLIN); made.append((one, reading, writing))
outer = select.epoll(); outer.register(made[0][0].fileno(), select.EPOLLIN)
for _, _, writing in made: os.write(writing, b"x")
events = all(one.poll(5) == [(reading, select.EPOLLIN)] for one, reading, _ in made)
old = [libc.epoll_create(1), libc.epoll_create1(0), libc.epoll_create1(os.O_CLOEXEC)]
flags = [bool(fcntl.fcntl(one, fcntl.F_GETFD)) for one in old]
refused = [call(installation.current_machine().number("epoll_create1"), flags) for flags in (1, -1)]
said(events=events, nested=len(outer.poll(5)), flags=flags, refused=refused)
""", 2048 * MIB)  # fmt: skip
    assert found == {
        "events": True,
        "nested": 1,
        "flags": [False, False, True],
        "refused": ["EINVAL", "EINVAL"],
    }


def test_watches_that_come_and_go_are_counted_anew() -> None:
    """Far more in sum than may be at a time."""
    found = flooded("""
one, (reading, _) = select.epoll(), os.pipe()
for _ in range(3000): one.register(reading, 0); one.unregister(reading)
said(done=True)
""", 1 * MIB)  # fmt: skip
    assert found == {"done": True}
