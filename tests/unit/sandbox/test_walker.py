"""Which trees are scanned, when, and the messages; which are stopped while the disk is nearly full."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.wait import wait_until
from skipping import machine_lacks

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import disk_usage
from agentbox.sandbox.monitor.disk_monitor import DiskMonitor
from agentbox.sandbox.monitor.disk_scanner import DiskScanner
from agentbox.sandbox.monitor.watchdog import TreeLimits

MIB = 1 << 20
EVERYTHING = 1 << 60  # a floor that every disk is below
SENDER = """
import array, os, socket, sys, tempfile
folder, mib, files = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
near, far = socket.socketpair()
sys.stdin.readline()
for _ in range(files):
    with tempfile.TemporaryFile(dir=folder) as one:
        os.posix_fallocate(one.fileno(), 0, (mib << 20) or 1)
        near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [one.fileno()]))])
print("sent", flush=True)
sys.stdin.readline()
"""
REAPER, BESIDE = 1 << 22, 1 << 23  # unused pids


class Lab:
    """A scanner and the launcher's end of its socket."""

    def __init__(self, floor: int, reserve: int = 0) -> None:
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.setblocking(False)
        self.scanner = DiskScanner(theirs, floor, reserve=reserve)

    def watch(self, folder: Path, reaper: int = REAPER) -> None:
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        bounds = TreeLimits(
            number=1, memory=0, pids=0, private=str(folder), tmp=8 * MIB, branch_disk=16 * MIB
        )
        self.ours.send(json.dumps({"watch": reaper, "bounds": bounds.__dict__}).encode())
        assert self.scanner._handle_message()

    def look_at_all(self) -> list[dict[str, Any]]:
        """As `said`, for all trees that are due, whenever they were scanned before."""
        self.scanner._next_walk = 0.0
        for one in self.scanner._trees.values():
            one.walked_at, one.vanished = -1e9, one.vanished + 1
        return self.said()

    def said(self) -> list[dict[str, Any]]:
        """By one poll."""
        self.scanner.poll()
        found = []
        while True:
            try:
                found.append(json.loads(self.ours.recv(1 << 16)))
            except BlockingIOError:
                return found


@pytest.fixture
def lab() -> Lab:
    return Lab(floor=0)


async def test_a_full_folder_is_found(lab: Lab, tmp_path: Path) -> None:
    """Temp beyond its cap is a breach with the observed size, once; the tree is then removed."""
    lab.watch(tmp_path)
    lab.said()
    (tmp_path / "tmp" / "x").write_bytes(os.urandom(9 * MIB))
    words: list[dict[str, Any]] = []
    await wait_until(lambda: bool(words.extend(lab.said()) or words), "it is found")
    (word,) = words
    assert (word["reaper"], word["breach"]["limit"], word["breach"]["cap"]) == (
        REAPER,
        "tmp",
        8 * MIB,
    )
    assert word["breach"]["observed"] > 9 * MIB
    assert lab.said() == []


@pytest.fixture
def quiet(tmp_path: Path) -> Iterator[Path]:
    """A device on which no other process writes."""
    if os.geteuid():
        machine_lacks("root, which a mount needs")
    (folder := tmp_path / "quiet").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@contextmanager
def sender(folder: Path, mib: int, files: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leaves so many deleted files in flight in a socket pair of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", SENDER, str(folder), str(mib), str(files)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def sent(process: subprocess.Popen[bytes]) -> None:
    """It has done so, at our command."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"sent\n"


async def test_deleted_files_that_are_under_way_in_sockets_count(lab: Lab, quiet: Path) -> None:
    """No table lists them, and the disk has lost them: the tree whose sockets carry descriptors is
    ended, no other."""
    with sender(quiet / "one/tmp", 4, 5) as process:
        lab.watch(quiet / "one", os.getpid())
        lab.watch(quiet / "beside", BESIDE)
        sent(process)
        words: list[dict[str, Any]] = []
        await wait_until(
            lambda: bool(words.extend(word for word in lab.said() if "breach" in word) or words),
            "it is found",
        )
    (word,) = words
    assert (word["reaper"], word["breach"]["limit"], word["breach"]["cap"]) == (
        os.getpid(),
        "tmp",
        8 * MIB,
    )
    assert word["breach"]["observed"] > 16 * MIB


async def test_what_others_wrote_is_no_matter_of_who_sends_descriptors(
    lab: Lab, quiet: Path
) -> None:
    """One descriptor stays in flight while another tree fills its own directory, within its own
    cap."""
    with sender(quiet / "one/tmp", 0, 1) as process:
        lab.watch(quiet / "one", os.getpid())
        lab.watch(quiet / "beside", BESIDE)
        lab.look_at_all()
        sent(process)
        (quiet / "beside/work").write_bytes(os.urandom(12 * MIB))
        one = lab.scanner._trees[os.getpid()]
        await wait_until(
            lambda: (
                bool(lab.look_at_all() or one.walked_at)
                and lab.scanner._trees[BESIDE].used > 12 * MIB
            ),
            "both are walked",
        )
        for _ in range(3):
            assert [word for word in lab.look_at_all() if "breach" in word] == []
        assert disk_usage.measure_usage(str(quiet / "one"), [process.pid]).in_flight
        assert one.hidden < 8 * MIB


async def test_who_has_a_socket_is_not_ended_for_what_others_write(lab: Lab, quiet: Path) -> None:
    """A process outside of all agents fills the disk; no descriptor is in flight."""
    with sender(quiet / "one/tmp", 0, 0) as process:
        lab.watch(quiet / "one", os.getpid())
        sent(process)
        for number in range(3):
            (quiet / str(number)).write_bytes(bytes(20 * MIB))
            assert [word for word in lab.look_at_all() if "breach" in word] == []


async def test_near_the_cap_is_a_warning(lab: Lab, tmp_path: Path) -> None:
    """And the peaks of both."""
    lab.watch(tmp_path)
    lab.said()
    (tmp_path / "work").write_bytes(os.urandom(14 * MIB))
    words: list[dict[str, Any]] = []
    await wait_until(lambda: bool(words.extend(lab.said()) or words), "it is found")
    assert [next(iter(word.keys() - {"reaper"})) for word in words] == ["warning", "peaks"]
    assert words[0]["warning"]["limit"] == "branch_disk"
    assert words[1]["peaks"]["branch_disk"] > 14 * MIB


def test_nobody_is_walked_while_nothing_is_written(lab: Lab, tmp_path: Path) -> None:
    """A directory that was full before the watch began, on a quiet disk, costs nothing until
    something vanishes."""
    lab.watch(tmp_path)
    one = lab.scanner._trees[REAPER]
    one.vanished = 0
    assert not one.is_due(time.monotonic(), slow_after=15)
    one.vanished = 5 * MIB  # more than half of the space of 8 MiB
    assert one.is_due(time.monotonic(), slow_after=15)


@pytest.mark.limit("free_floor")
def test_below_the_floor_all_are_stopped_first(quiet: Path) -> None:
    """Stop, the scan of all, and continue: only the writer is ended. Not again until more vanished,
    so that a full disk does not stop all work."""
    lab = Lab(floor=EVERYTHING)
    lab.watch(quiet / "beside", BESIDE)
    lab.watch(quiet / "one")
    (quiet / "one/tmp/x").write_bytes(os.urandom(9 * MIB))
    words = [word for word in lab.said() if "peaks" not in word]
    assert [next(iter(word.keys() - {"reaper"})) for word in words] == [
        "freeze",
        "breach",
        "freeze",
    ]
    assert [word["reaper"] for word in words if "breach" in word] == [REAPER]
    assert [word["freeze"] for word in words if "freeze" in word] == [True, False]
    assert lab.said() == []


@pytest.mark.limit("free_reserve")
def test_no_sum_of_agents_takes_the_reserve_of_the_disk(quiet: Path) -> None:
    """Each stays below its own cap and all together leave the box nothing: the one that uses most
    ends, and one that uses little never does. Not again until more vanished."""
    lab = Lab(floor=EVERYTHING, reserve=EVERYTHING)
    lab.watch(quiet / "beside", BESIDE)
    lab.watch(quiet / "one")
    for name, tmp, branch in (("one", 7, 12), ("beside", 5, 12)):
        (quiet / name / "tmp/x").write_bytes(os.urandom(tmp * MIB))
        (quiet / name / "x").write_bytes(os.urandom(branch * MIB))
    words = [word for word in lab.said() if "peaks" not in word and "warning" not in word]
    ended = [(word["reaper"], word["breach"]["limit"]) for word in words if "breach" in word]
    assert ended == [(REAPER, "free_reserve")]
    assert [word["freeze"] for word in words if "freeze" in word] == [True, False]
    assert lab.said() == []
    small = Lab(floor=EVERYTHING, reserve=EVERYTHING)
    small.watch(quiet / "small")
    (quiet / "small/tmp/x").write_bytes(os.urandom(MIB))
    assert not [word for word in small.said() if "breach" in word]


async def test_a_stop_is_of_whole_trees_and_is_taken_back(tmp_path: Path) -> None:
    """Descendants too; a process that was stopped before stays so."""
    ours, scanner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    disk = DiskMonitor(lambda: None)
    ours.setblocking(False)
    disk._socket = ours
    script = "sleep 1000 & sleep 1001 & kill -STOP $!; wait"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as shell:
        try:
            await wait_until(
                lambda: states_below(shell.pid) == ["S", "T"], "two sleep, one of them is stopped"
            )
            disk.watch(shell.pid, TreeLimits(number=1, memory=0, pids=0, private=str(tmp_path)))
            scanner.send(json.dumps({"freeze": True}).encode())
            assert list(disk.messages()) == []
            await wait_until(lambda: states_below(shell.pid) == ["T", "T"], "all are stopped")
            scanner.send(json.dumps({"freeze": False}).encode())
            assert list(disk.messages()) == []
            await wait_until(lambda: states_below(shell.pid) == ["S", "T"], "one goes on")
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    disk.close()
    scanner.close()


def states_below(pid: int) -> list[str]:
    return sorted(row.state for row in tree.descendants(tree.scan(), [pid]))
