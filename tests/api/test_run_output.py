"""The caller of `run` gets every byte of the output in order, however fast it is written and
however late it is read."""

import hashlib
import signal
import subprocess
from collections.abc import Callable

import pytest
from commandline import agentbox, command
from helpers import until
from support.api_box import ApiBox

from agentbox.client import BoxClient
from agentbox.host.cli.commands.agents import task_output

MIB = 1 << 20
COUNTED = "import sys\nfor n in range({lines}): sys.stdout.write('%07d\\n' % n)"  # 8 bytes a line


def counted(size: int) -> tuple[str, ...]:
    """A command that writes so many bytes, each line different."""
    return ("/usr/bin/python3", "-c", COUNTED.format(lines=size // 8))


def digest(size: int) -> str:
    """Of what that command writes."""
    return hashlib.sha256(b"".join(b"%07d\n" % n for n in range(size // 8))).hexdigest()


@pytest.mark.parametrize("mebibytes", [1, 8])
def test_every_byte_arrives(box: ApiBox, mebibytes: int) -> None:
    """More than a box stores of a stream, as fast as the command writes."""
    done = agentbox(box, "--quiet", "run", "--", *counted(mebibytes * MIB))
    assert (done.returncode, len(done.stdout), done.stderr) == (0, mebibytes * MIB, b"")
    assert hashlib.sha256(done.stdout).hexdigest() == digest(mebibytes * MIB)


def test_a_late_reader_gets_every_byte(box: ApiBox, client: BoxClient) -> None:
    """The terminal is not read before the command has filled all buffers on the way; other agents
    continue."""
    size = 12 * MIB
    with subprocess.Popen(
        command(box, "--quiet", "run", "--", *counted(size)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        until(
            lambda: [
                one
                for one in client.agents.list(state="running").items
                if one.spec.argv[-1:] == (counted(size)[-1],)
            ]
        )
        beside = agentbox(box, "--quiet", "run", "--", *counted(2 * MIB))
        assert hashlib.sha256(beside.stdout).hexdigest() == digest(2 * MIB)
        out, said = running.communicate(timeout=60)
    assert (running.returncode, len(out), said) == (0, size, b"")
    assert hashlib.sha256(out).hexdigest() == digest(size)


def test_both_streams_are_whole(box: ApiBox) -> None:
    """A flood on stderr beside one on stdout."""
    script = "head -c 3M /dev/zero & head -c 3M /dev/zero >&2; wait"
    done = agentbox(box, "--quiet", "run", "--", "/bin/sh", "-c", script)
    assert (done.returncode, len(done.stdout), len(done.stderr)) == (0, 3 * MIB, 3 * MIB)


@pytest.mark.timed
def test_an_agent_goes_on_when_its_reader_dies(own_box: Callable[..., ApiBox]) -> None:
    """A killed reader does not block: output that is not read is dropped as usual, and the command
    ends."""
    box = own_box()
    with box.client() as client:
        with subprocess.Popen(
            command(box, "--quiet", "run", "--", *counted(24 * MIB)),
            stdout=subprocess.PIPE,
            bufsize=0,
        ) as running:
            assert running.stdout is not None
            assert running.stdout.read(8) == b"0000000\n"
            running.send_signal(signal.SIGKILL)
        (task,) = client.list_tasks().items
        assert task.state == "running"
        until(lambda: client.get_task(task.task_id).final, seconds=60)
        assert client.get_task(task.task_id).state == "succeeded"


def test_what_nobody_is_attached_to_is_not_held(box: ApiBox, client: BoxClient) -> None:
    """A task that was only submitted ends by itself, and a later reader does not block it either."""
    spec = {"name": "flood", "argv": list(counted(8 * MIB)), "profile": "sandboxed"}
    task_id = client.submit_task(spec).task_id
    until(lambda: client.get_task(task_id).final, seconds=30)
    assert client.get_task(task_id).state == "succeeded"


def test_lost_output_is_told(box: ApiBox, client: BoxClient) -> None:
    """Output that was dropped while no reader was attached: a reader of the log is notified, and
    `run` would return 125."""
    flood = {"name": "flood", "argv": list(counted(8 * MIB)), "profile": "sandboxed"}
    task_id = client.submit_task(flood).task_id
    until(lambda: client.get_task(task_id).final)
    reader = task_output.LogReader(client, task_id, task_output.BufferSink())
    assert reader.read().state == "succeeded"
    assert reader.output_lost
    done = agentbox(box, "task", "logs", task_id)
    assert len(done.stdout) < 8 * MIB
    assert b"part of the output is missing" in done.stderr


def test_every_byte_arrives_across_a_killed_api(own_box: Callable[..., ApiBox]) -> None:
    """The reader resumes where its connection broke; the command waited for it."""
    box, size = own_box(), 12 * MIB
    with subprocess.Popen(
        command(box, "--quiet", "run", "--", *counted(size)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        begun = running.stdout.read(MIB)
        box.kill()
        box.start()
        out, said = running.communicate(timeout=60)
    assert (running.returncode, len(begun + out), said) == (0, size, b"")
    assert hashlib.sha256(begun + out).hexdigest() == digest(size)
