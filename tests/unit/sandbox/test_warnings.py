"""Crossing 80 % warns once, staying there warns no more, and below 50 % it is armed again: of every
limit that has a gauge."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until

from agentbox.sandbox.monitor.disk_scanner import DiskScanner
from agentbox.sandbox.monitor.watchdog import TreeLimits, Watchdog

MIB = 1 << 20
LOOKS = 5  # in a row that find the same

# In place of a reaper: its child uses as many MiB and has as many children as commanded, and reports when it does.
TREE = """
import os, subprocess, sys
if os.fork(): os.wait(); os._exit(0)
held, children = None, []
for line in sys.stdin:
    size, number = map(int, line.split())
    held = None
    held = bytearray(b"x") * (size << 20)
    while len(children) < number: children.append(subprocess.Popen(["sleep", "1000"]))
    while len(children) > number: one = children.pop(); one.kill(); one.wait()
    print("done", flush=True)
for one in children: one.kill(); one.wait()
"""


@pytest.fixture
def told() -> Iterator[tuple[int, Callable[[int, int], None]]]:
    """The root's pid, and how its tree is told to grow (MiB, processes below it)."""
    with subprocess.Popen(
        [sys.executable, "-c", TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as root:
        assert root.stdin is not None
        assert root.stdout is not None
        reading, writing = root.stdout, root.stdin

        def tell(size: int, number: int) -> None:
            writing.write(f"{size} {number}\n")
            writing.flush()
            assert reading.readline() == "done\n"

        yield root.pid, tell
        writing.close()


@pytest.mark.parametrize(("limit", "high", "higher", "low"), [("memory", (230, 0), (240, 0), (20, 0)), ("pids", (0, 16), (0, 17), (0, 4))])  # fmt: skip
async def test_of_a_tree(
    told: tuple[int, Callable[[int, int], None]], limit: str, high: tuple[int, int], higher: tuple[int, int], low: tuple[int, int],
) -> None:  # fmt: skip
    """Memory and processes, as the watchdog sees a real tree."""
    root, tell = told
    dog = Watchdog()
    bounds = {root: TreeLimits(number=1, memory=256 * MIB if limit == "memory" else 0, pids=20)}

    def warned() -> list[str]:
        return [what.limit for _, kind, what in dog.poll(bounds) if kind == "warning"]

    for _ in range(2):
        tell(*high)
        found: list[str] = []
        await wait_until(lambda found=found: bool(found.extend(warned()) or found), "it warns")  # type: ignore[misc]
        assert found == [limit]
        tell(*higher)
        assert [warned() for _ in range(LOOKS)] == [[]] * LOOKS
        tell(*low)
        await wait_until(lambda: _below_half(dog, root, limit), "it is armed again")
        assert warned() == []


TABLES = """
import mmap
far = mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)  # MAP_NORESERVE
for at in range(0, 64 << 30, 2 << 20): far[at]
"""
PIPES = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
held = []
def fill():
    reading, writing = os.pipe(); os.set_blocking(writing, False); held.append((reading, writing))
    try: os.write(writing, bytes(1 << 13))
    except BlockingIOError: pass
for _ in range(10):
    if os.fork() == 0: break
try:
    while True: fill()
except OSError: pass
"""


@pytest.mark.parametrize("script", [TABLES, PIPES], ids=["tables", "pipes"])
async def test_what_the_kernel_keeps_beside_pages_is_memory_too(script: str) -> None:
    """Tables of pages that are read and contain nothing, 128 MiB of them, and full pipes: a cap of
    64 MiB is crossed."""
    with subprocess.Popen(["sh", "-c", '"$0" -c "$1"; true', sys.executable, f"{script}\nimport signal; signal.pause()"],
                          start_new_session=True) as root:  # fmt: skip
        try:
            dog, bounds = Watchdog(), {root.pid: TreeLimits(number=1, memory=64 * MIB, pids=0)}
            found: list[str] = []
            await wait_until(
                lambda: bool(
                    found.extend(w.limit for _, kind, w in dog.poll(bounds) if kind == "breach")
                    or found
                ),
                "it is ended",
            )
            assert found == ["memory"]
        finally:
            os.killpg(root.pid, signal.SIGKILL)


def _below_half(dog: Watchdog, root: int, limit: str) -> bool:
    list(dog.poll({root: TreeLimits(number=1, memory=256 * MIB, pids=20)}))
    return bool(getattr(dog._watched[root], limit).to_rearm == float("inf"))


@pytest.mark.parametrize(
    ("limit", "place", "cap"), [("tmp", "tmp/x", 8 * MIB), ("branch_disk", "x", 16 * MIB)]
)
async def test_of_a_folder(tmp_path: Path, limit: str, place: str, cap: int) -> None:
    """Temp and branch, as the scanner finds real files; what is removed is noticed though nothing more is written."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    scanner = DiskScanner(theirs, floor=0)
    (tmp_path / "tmp").mkdir()
    bounds = TreeLimits(
        number=1, memory=0, pids=0, private=str(tmp_path), tmp=8 * MIB, branch_disk=16 * MIB
    )
    ours.send(json.dumps({"watch": 1 << 22, "bounds": bounds.__dict__}).encode())
    assert scanner._handle_message()
    one, warnings = scanner._trees[1 << 22], []

    def look() -> int:
        """Warnings so far."""
        scanner.poll()
        try:
            while True:
                word = json.loads(ours.recv(1 << 16))
                warnings.extend([word["warning"]["limit"]] if "warning" in word else [])
        except BlockingIOError:
            return len(warnings)

    look()
    (gauge,) = (gauge for gauge in one.gauges if gauge.limit == limit)
    for times in (1, 2):
        (tmp_path / place).write_bytes(os.urandom(int(0.85 * cap)))
        await wait_until(lambda times=times: look() == times, "it warns", seconds=20)  # type: ignore[misc]
        with (tmp_path / place).open("ab") as more:
            more.write(os.urandom(int(0.08 * cap)))
        await wait_until(
            lambda: bool(look() and gauge.peak > 0.92 * cap), "it has seen more", seconds=20
        )
        assert warnings == [limit] * times
        (tmp_path / place).unlink()
        await wait_until(
            lambda: bool(look() and gauge.to_rearm == float("inf")), "it is armed again", seconds=20
        )
    ours.close()
    theirs.close()
