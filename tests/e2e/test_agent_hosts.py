"""A box with an MCP server and an agent that speaks ACP: mcp-host and session-host boot in a container, serve, are
repaired, and end in time."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from cli_box import PYTHON, CliBox, wait_for
from support.acp_agent import SCRIPT
from support.mcp_servers import CALCULATOR

from agentbox.core.paths import CHECKOUT
from agentbox.host.packages.lock_inputs import host_system

NAME, PORT = "agentbox-e2e-hosts", 29150
PROGRAMS = ("mcp-host", "session-host")
CALL = """
import json, os, urllib.request
message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
           "params": {"name": "calc__add", "arguments": {"a": 20, "b": 22}}}
request = urllib.request.Request(
    os.environ["AGENTBOX_URL"] + "/mcp", json.dumps(message).encode(),
    {"Authorization": "Bearer " + os.environ["AGENTBOX_TOKEN"],
     "Accept": "application/json", "Content-Type": "application/json"})
print(urllib.request.urlopen(request).read().decode())
"""
MANIFEST = f"""
image.systems = ["{host_system()}"]
[agents.talker]
command = ["python3", "-c", {json.dumps(SCRIPT)}]
protocol = "acp"
[agents.caller]
command = ["python3", "-c", {json.dumps(CALL)}]
protocol = "oneshot"
mcp = ["calc"]
[mcp.servers.calc]
command = ["python3", "-c", {json.dumps(CALCULATOR)}]
pin = "first-use"
"""
STATES = """
import json
from agentbox.core.paths import Paths
from agentbox.box.supervision.rpc import SupervisorClient
rows = SupervisorClient(Paths()).states()
print(json.dumps({name: [row.name, row.pid] for name, row in rows.items()}, default=str))
"""
_LOCK_SECONDS, _UP_SECONDS = 900, 900
pytestmark = pytest.mark.timeout(_LOCK_SECONDS + _UP_SECONDS)  # the first test has both


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliBox]:
    """Locked, built and started by the commands of the product."""
    cli_box = CliBox(tmp_path_factory.mktemp("hosts"), NAME, PORT, MANIFEST)
    cli_box.down()  # the remains of an earlier run that was killed
    shutil.copyfile(CHECKOUT / "agentbox.lock", cli_box.folder / "agentbox.lock")
    locked = cli_box("lock", timeout=_LOCK_SECONDS)
    assert locked.code == 0, locked.err
    started = cli_box("up", "--yes", timeout=_UP_SECONDS)
    assert started.code == 0, started.err
    yield cli_box
    cli_box.down()


def pids(box: CliBox) -> dict[str, int]:
    """Of both programs, as supervisord has them now; 0 = it does not run."""
    rows = json.loads(box.inside(PYTHON, "-I", "-c", STATES))
    return {name: rows[name][1] for name in PROGRAMS}


def called(box: CliBox) -> Any:
    """What an agent gets of a call of the server's tool."""
    ran = box("run", "--agent", "caller")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["result"]


def asked(box: CliBox) -> str:
    """What the agent of a new session says."""
    opened = box("session", "new", "--agent", "talker")
    assert opened.code == 0, opened.err
    session = opened.out.split()[0]
    prompted = box("session", "prompt", session, "hello")
    assert prompted.code == 0, prompted.err
    assert box("session", "close", session).code == 0
    return prompted.out


def test_both_programs_serve(box: CliBox) -> None:
    """The boot is sealed and ready with them, an agent's call reaches the server, a session answers a prompt."""
    assert box.status()["missing"] == []
    assert all(pids(box).values())
    assert called(box)["structuredContent"] == {"sum": 42}
    assert "you said: hello" in asked(box)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_killed_program_is_repaired(box: CliBox, name: str) -> None:
    """supervisord starts it again, and it serves."""
    killed = box.kill_program(name)
    wait_for(lambda: pids(box)[name] not in (0, killed), 30, f"{name} runs again")
    wait_for(lambda: box.status()["missing"] == [], 30, "nothing is missing")
    if name == "mcp-host":
        wait_for(lambda: "structuredContent" in called(box), 30, "the tool is called again")
    else:
        assert "you said: hello" in asked(box)


def test_it_stops_within_its_budget(box: CliBox) -> None:
    """With a server and a session that run: else the engine would kill it, which is exit code 137."""
    assert called(box)["structuredContent"] == {"sum": 42}
    assert box("session", "new", "--agent", "talker").code == 0
    subprocess.run(["docker", "stop", NAME], capture_output=True, check=True)
    assert box.container()["State"]["ExitCode"] == 0
