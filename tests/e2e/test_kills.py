"""What is killed is restarted, and nothing that was promised is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_box import CliBox, wait_for

from agentbox.client import ApiError, BoxClient, BoxUnreachable

LINES = 2000
EVENTS = 1000
SEED = 20261121
COUNTING = f"import time\nfor n in range({LINES}): print(n, flush=True); time.sleep(0.002)\nraise SystemExit(7)"


@pytest.fixture(scope="module")
def box(cli_box: CliBox) -> CliBox:
    """A docker box that is ready."""
    cli_box.up()
    return cli_box


def ready(box: CliBox) -> bool:
    return box("--json", "status").code == 0


def client_of(box: CliBox) -> BoxClient:
    return BoxClient(box.url, token=(box.state / "token").read_text().strip())


@pytest.mark.sampled(3, family="killed programs")
def test_kill_9_of_the_api_loses_no_line_of_an_agent(box: CliBox, tmp_path: Path) -> None:
    """`run` streams 2,000 numbered lines; the API is killed twice meanwhile: every line arrives
    once, in order, and the exit code is the agent's."""
    out = tmp_path / "out"
    run = box.begin("run", "--", "python3", "-c", COUNTING, out=out)
    for seen in (100, 900):
        wait_for(
            lambda seen=seen: out.read_bytes().count(b"\n") > seen or None, 30, f"{seen} lines"
        )
        box.kill_program("management-api")
    assert run.wait(60) == 7, out.with_suffix(".err").read_text()
    assert out.read_text().split() == [str(n) for n in range(LINES)]
    assert "exit code 7" in out.with_suffix(".err").read_text()
    wait_for(lambda: ready(box), 20, "ready again")


@pytest.mark.sampled(3, family="killed programs")
def test_kill_9_of_the_agent_host_leaves_no_orphan_and_a_bead_that_tells(
    box: CliBox, tmp_path: Path
) -> None:
    """The agent and its child end with their host; the bead of the task is closed as failed with
    the reason; the next run works."""
    run = box.begin(
        "run", "--", "sh", "-c", "sleep 4444 & echo started; sleep 5555", out=tmp_path / "out"
    )
    wait_for(lambda: b"started" in (tmp_path / "out").read_bytes(), 20, "the agent runs")
    assert box.inside("pgrep", "-c", "sleep").strip() == "2"
    box.kill_program("agent-host")
    assert run.wait(60) == 125
    assert box("shell", "--", "pgrep", "-c", "sleep").out.strip() == "0"
    task = box("--json", "task", "list").json[-1]
    assert task["state"] == "failed"
    with client_of(box) as client:
        bead = client.call("show_bead", {"id": task["task_id"]})
    assert (bead["status"], bead["outcome"]) == ("closed", "failed")
    assert bead["result"]["exit"]["reason"] == "lost"
    assert "agent-host" in task["note"], task["note"]
    wait_for(lambda: ready(box), 20, "ready again")
    assert box("run", "--", "echo", "fine").out == "fine\n"


@pytest.mark.sampled(3, family="killed programs")
def test_no_acknowledged_event_is_lost_while_the_writer_is_killed(box: CliBox) -> None:
    """1,000 events are appended by four clients while the API is killed three times at random; afterwards each one that was
    acknowledged stands in the journal once, at the number that was answered, and the chain verifies."""
    answered: dict[int, int] = {}
    numbers, lock = iter(range(EVENTS)), threading.Lock()

    def append() -> None:
        with client_of(box) as client:
            while (number := _next(numbers, lock)) is not None:
                answered[_appended(client, number)] = number

    dice = random.Random(SEED)
    moments = [
        dice.randint(third, third + EVENTS // 3 - 1) for third in range(0, EVENTS - 2, EVENTS // 3)
    ]
    shell = subprocess.Popen(
        box.argv("shell", "--", "bash"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=box.environ(),
        text=True,
    )
    assert shell.stdin is not None
    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for moment in moments:
        wait_for(lambda moment=moment: len(answered) >= moment or None, 60, f"{moment} events")
        shell.stdin.write("kill -KILL $(pgrep -f 'agentbox[.]api') && echo killed\n")
        shell.stdin.flush()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert shell.communicate(timeout=20)[0].count("killed") == len(moments)
    assert sorted(answered.values()) == list(range(EVENTS))
    wait_for(lambda: ready(box), 20, "ready again")
    found = _journal(box)
    assert {seq: found[seq] for seq in answered} == answered
    assert box("events", "verify").code == 0


def _appended(client: BoxClient, number: int) -> int:
    """Its number in the journal, requested until the box answers."""
    body = {"events": [{"type": "e2e.count", "data": {"n": number}}]}
    while True:
        try:
            return int(client.call("append_events", body=body)["first_seq"])
        except BoxUnreachable:
            continue
        except ApiError as error:
            if not error.retryable:
                raise


def _next(numbers: Iterator[int], lock: threading.Lock) -> int | None:
    with lock:
        return next(numbers, None)


def _journal(box: CliBox) -> dict[int, int]:
    found: dict[int, int] = {}
    since = -1
    with client_of(box) as client:
        while True:
            batch = client.call(
                "read_events", query={"since": since, "limit": 1000, "types": "e2e.count"}
            )
            found |= {event["seq"]: event["data"]["n"] for event in batch["events"]}
            if not batch["events"]:
                return found
            since = batch["next_since"]


def test_a_box_that_its_engine_gave_up_is_named_and_up_counts_anew(box: CliBox) -> None:
    """Docker restarts a container five times in all, however long it ran well between. Then
    `status` reports it, and the next `up` resets the count."""
    for number in range(5):
        _kill_first(box)
        wait_for(
            lambda number=number: _runs(box) == (True, number + 1) or None,
            60,
            f"start {number + 1}",
        )
    _kill_first(box)
    wait_for(lambda: box.container()["State"]["Status"] == "exited" or None, 20, "docker gave up")
    ended = box.status()
    assert (ended["state"], ended["restarts"], "5 times, the maximum" in ended["why"]) == (
        "exited",
        5,
        True,
    )
    assert "agentbox.sh up" in ended["fix"]
    box.up()
    assert _runs(box) == (True, 0)
    _kill_first(box)
    wait_for(lambda: _runs(box) == (True, 1) or None, 60, "docker starts it again")
    wait_for(lambda: ready(box), 60, "ready again")


def _runs(box: CliBox) -> tuple[bool, int]:
    found = box.container()
    return found["State"]["Running"] and not found["State"]["Restarting"], found["RestartCount"]


def _kill_first(box: CliBox) -> None:
    """The container's first process, not by docker's own `kill`, after which it starts nothing again."""
    os.kill(box.container()["State"]["Pid"], signal.SIGKILL)
