"""`agentbox run` and `agentbox task` against a real API and agent-host, as a user's shell sees them."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import agentbox, command
from helpers import until
from support.api_box import ApiBox
from support.plans import plan_of

from agentbox.client import BoxClient


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)],
)
def test_the_exit_code_is_the_commands(box: ApiBox, script: str, code: int) -> None:
    """Its own code, or 128 + n when signal n ended it."""
    assert agentbox(box, "run", "--", "/bin/sh", "-c", script).returncode == code


def test_both_streams_pass_byte_for_byte(box: ApiBox) -> None:
    """stdout is the command's bytes and nothing else; stderr has its bytes between our two lines."""
    script = "printf '\\377\\000x'; echo warn >&2"
    done = agentbox(box, "run", "--", "/bin/sh", "-c", script)
    assert done.stdout == b"\xff\x00x"
    first, middle, last = done.stderr.decode().splitlines()
    assert "confined by the kernel" in first
    assert middle == "warn"
    assert "succeeded: exit code 0" in last


def test_quiet_prints_only_the_command(box: ApiBox) -> None:
    """Nothing of ours on either stream."""
    done = agentbox(box, "--quiet", "run", "--", "/bin/sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")


def test_output_comes_as_it_is_made(box: ApiBox) -> None:
    """The first line is printed while the command still runs."""
    with subprocess.Popen(
        command(box, "--quiet", "run", "--", "/bin/sh", "-c", "echo one; sleep 30"),
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"one\n"
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
        assert run.wait(20) == 130


def test_ctrl_c_cancels_the_task(box: ApiBox, client: BoxClient) -> None:
    """SIGINT ends the agent in the box, and the command returns 130."""
    arguments = command(box, "run", "--", "/bin/sh", "-c", "echo up; sleep 300")
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"up\n"
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=20)
    assert run.returncode == 130
    assert b"cancelled by" in said
    newest = max(_all_tasks(client), key=lambda task: task.created_at)
    assert newest.state == "cancelled"


def _all_tasks(client: BoxClient):  # type: ignore[no-untyped-def]
    return client.list_tasks(limit=500).items


def test_the_time_limit_is_124(box: ApiBox) -> None:
    """As timeout(1) returns it."""
    assert agentbox(box, "run", "--timeout", "0.5", "--", "/bin/sleep", "30").returncode == 124


def test_what_cannot_start_is_125(box: ApiBox) -> None:
    """agentbox itself failed; the reason is on stderr."""
    done = agentbox(box, "run", "--", "/no/such/program")
    assert done.returncode == 125
    assert b"could not start" in done.stderr


@pytest.mark.parametrize("words", [("run",), ("run", "--no-stream"), ("--json", "run")])
def test_output_that_cannot_be_written_is_125(box: ApiBox, words: tuple[str, ...]) -> None:
    """A full disk and a closed stream: the caller does not treat the output as complete, and no
    traceback is printed."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command(box, *words, "--", "echo", "hi"),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 125
    assert b"agentbox: cannot finish run: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command(box, *words, "--", "echo", "hi")]
    done = subprocess.run(closed, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, b"cannot finish run: Bad file descriptor" in done.stderr) == (
        125,
        True,
    ), done.stderr


def test_no_box_is_125() -> None:
    """Nothing answers: 125 and one sentence."""
    done = subprocess.run(
        command("http://127.0.0.1:9", "run", "--", "true"), capture_output=True, check=False
    )
    assert done.returncode == 125
    assert b"cannot reach the box" in done.stderr
    assert b"Traceback" not in done.stderr


def test_options_of_the_command_are_its_own(box: ApiBox) -> None:
    """What follows the command is not ours, with and without `--`."""
    assert (
        agentbox(box, "--quiet", "run", "/bin/echo", "-n", "--timeout", "x").stdout
        == b"--timeout x"
    )
    assert (
        agentbox(box, "--quiet", "run", "--", "/usr/bin/printf", "%s", "--help").stdout == b"--help"
    )


def test_environment_and_input(box: ApiBox) -> None:
    """--env sets a variable, --input feeds standard input."""
    done = agentbox(
        box,
        "--quiet",
        "run",
        "-e",
        "A=b c",
        "--input",
        "-",
        "--",
        "/bin/sh",
        "-c",
        'echo "$A"; cat',
        given=b"in",
    )
    assert done.stdout == b"b c\nin"


def test_an_agent_of_the_manifest_runs_by_its_name(tmp_path: Path) -> None:
    """Its own command and profile, with what it is fed; neither a command nor a name is a mistake of the user's."""
    table = plan_of('[agents.copier]\ncommand = ["cat"]\nprofile = "readonly"\n').agents
    with ApiBox(tmp_path, agents=table) as box, box.client() as client:
        done = agentbox(box, "run", "--agent", "copier", "--input", "-", given=b"in")
        assert (done.returncode, done.stdout) == (0, b"in")
        assert b"as the manifest defines this agent" in done.stderr
        (made,) = client.agents.list(name="copier").items
        assert made.spec.profile == "readonly"
        assert (
            agentbox(box, "run", "--agent", "copier", "--", "echo").returncode
            == agentbox(box, "run").returncode
            == 2
        )


def test_json_is_one_document(box: ApiBox) -> None:
    """With --json stdout is one document with the output inside."""
    done = agentbox(box, "--json", "run", "--", "/bin/sh", "-c", "echo out; exit 3")
    document = json.loads(done.stdout)
    assert (document["state"], document["stdout"], document["exit"]["code"], done.returncode) == (
        "failed",
        "out\n",
        3,
        3,
    )


def test_a_killed_api_is_not_noticed_by_the_reader(own_box: Callable[..., ApiBox]) -> None:
    """SIGKILL of the API while output streams to a terminal: every line once, and the exit code."""
    box = own_box()
    script = "n=0; while [ $n -lt 300 ]; do n=$((n+1)); echo $n; sleep 0.005; done; exit 9"
    with subprocess.Popen(
        command(box, "--quiet", "run", "--", "/bin/sh", "-c", script),
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as run:
        assert run.stdout is not None
        first = run.stdout.readline()
        box.kill()
        box.start()
        rest, _ = run.communicate(timeout=30)
    assert (first + rest).decode().split() == [str(n) for n in range(1, 301)]
    assert run.returncode == 9


def test_a_flood_is_bounded_and_told(box: ApiBox) -> None:
    """20 MB of output through a slow pipe: dropped output is reported on stderr, the end is always
    printed."""
    script = "head -c 20000000 /dev/zero | tr '\\0' 'x'; echo; echo END"
    reading, writing = os.pipe()
    with subprocess.Popen(
        command(box, "run", "--", "/bin/sh", "-c", script), stdout=writing, stderr=subprocess.PIPE
    ) as run:
        os.close(writing)
        data = bytearray()
        reader = threading.Thread(target=lambda: _drain(reading, data))
        reader.start()
        _, said = run.communicate(timeout=60)
        reader.join(10)
    assert run.returncode == 0
    assert data.endswith(b"\nEND\n")
    assert len(data) > 1_000_000
    assert len(data) == 20_000_005 or b"dropped" in said


def _drain(descriptor: int, into: bytearray) -> None:
    while piece := os.read(descriptor, 65536):
        into += piece
    os.close(descriptor)


def test_task_verbs(box: ApiBox, client: BoxClient) -> None:
    """submit prints an id; list, show, logs and stop accept it; submit --wait returns the outcome
    as exit code."""
    done = agentbox(box, "task", "submit", "--", "/bin/sh", "-c", "echo hello")
    task_id = done.stdout.decode().strip()
    until(lambda: client.get_task(task_id).final)
    assert task_id in agentbox(box, "task", "list").stdout.decode()
    assert "succeeded" in agentbox(box, "task", "show", task_id).stdout.decode()
    assert agentbox(box, "task", "logs", task_id).stdout == b"hello\n"
    assert agentbox(box, "task", "stop", task_id).returncode == 0
    assert agentbox(box, "task", "submit", "--wait", "--", "/bin/false").returncode == 1
