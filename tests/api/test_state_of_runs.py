"""State is a run's own: two runs of one program find nothing of each other, by any method of the agent API, MCP or file."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import agentbox, command
from intruder import INTRUDER, VICTIM, attempts
from support.api_box import ApiBox
from support.gateway_box import GatewayBox

from agentbox.client import BoxClient
from agentbox.core.ids import uuid7
from agentbox.gateway.agent_api.hello import METHODS

RUN = ("--quiet", "run", "--input", "-")
PROGRAM = ("--", "python3", "-I", "-c")


@pytest.fixture(scope="module")
def box(prefix: Path) -> Iterator[ApiBox]:
    """With a gateway, which is the agents' only address."""
    found = ApiBox(prefix)
    found.paths.token("gateway").parent.mkdir(parents=True, exist_ok=True)
    found.paths.token("gateway").write_text("a-token-of-this-boot")
    with found, GatewayBox(prefix, found.plan):
        yield found


def test_two_successive_runs_of_one_program(box: ApiBox, client: BoxClient) -> None:
    """The first has ended, and its state is still stored."""
    word = uuid7()
    done = agentbox(box, *RUN, *PROGRAM, VICTIM, given=_line({"word": word, "stays": False}))
    assert done.returncode == 0, done.stderr
    check(box, client, word, json.loads(done.stdout))


def test_two_concurrent_runs_of_one_program(box: ApiBox, client: BoxClient) -> None:
    """The first runs, has a lease, and has its HOME."""
    word = uuid7()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command(box, *RUN, *PROGRAM, VICTIM), **pipes) as victim:  # type: ignore[call-overload]
        try:
            victim.stdin.write(_line({"word": word, "stays": True}))
            victim.stdin.close()
            found = json.loads(victim.stdout.readline())
            check(box, client, word, found)
            agent = client.agents.get(found["hello"]["agent"]["id"])
            assert agent.state == "running"
        finally:
            victim.send_signal(signal.SIGINT)
            victim.wait(30)


def check(box: ApiBox, client: BoxClient, word: str, victim: dict[str, Any]) -> None:
    """A second run of the same program tries every method; no response contains the secret word,
    and nothing of the first was changed."""
    tries = attempts(victim)
    assert set(tries) == set(METHODS)
    calls = [(method, params) for method, rows in tries.items() for params in rows]
    folders = [str(box.paths.branches), victim["home"], str(box.paths.prefix), "/tmp", "/var/tmp"]
    done = agentbox(
        box, *RUN, *PROGRAM, INTRUDER, given=_line({"calls": calls, "folders": folders})
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [method for method, _ in said["rpc"]] == [method for method, _ in calls]
    leaks = [
        (where, row)
        for where in ("rpc", "mcp", "files")
        for row in said[where]
        if word in json.dumps(row)
    ]
    assert not leaks
    assert said["hello"]["result"]["state"] != victim["hello"]["state"]
    own = victim["hello"]["own"]
    kept = client.memory.retrieve("k", namespace=own["memory"])
    assert kept is not None
    assert kept.value == {"note": word}
    assert client.pods.read(f"{own['pods']}notes/a.txt") == word.encode()
    bead, part = (client.call("show_bead", {"id": victim[name]}) for name in ("bead", "part"))
    assert (bead["status"], part["status"]) == ("open", "claimed")


def _line(given: Any) -> bytes:
    return json.dumps(given).encode() + b"\n"
