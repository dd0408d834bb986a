"""RC-013: an agent cannot touch the control plane: sentinel, tokens, sockets, PID 1, API, journal, another agent.

Columns D and H. The same script runs twice: as the box's user outside of any sandbox, where everything works, and as an
agent, where each thing must be refused, by which errno is printed.
"""

import errno
import json
from typing import Any

import pytest
from harness.agents import client_of, places, python_spec, wait_served
from harness.box import Box
from harness.outcomes import API_PORT
from harness.waiting import wait_for

REFUSALS = (errno.EACCES, errno.EPERM)
# Each step is undone or harmless where it works. Words: a JSON object of paths and pids.
ATTACK = """
import json, os, socket, sys
at = json.loads(sys.argv[1])
def read(path):
    os.close(os.open(path, os.O_RDONLY))
def listed(path):
    os.listdir(path)
def made(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)
def unix(path):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
def tcp(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
steps = {
    "read the sentinel": lambda: read(at["sentinel"]),
    "put a file beside the sentinel": lambda: made(at["run"] + "/bootstrap.done.new"),
    "say that a program is ready": lambda: made(at["run"] + "/ready.d/another"),
    "read the API's token": lambda: read(at["key"]),
    "read agent-host's token": lambda: read(at["host_token"]),
    "list the secrets": lambda: listed(os.path.dirname(at["key"])),
    "the supervisor's socket": lambda: unix(at["supervisor"]),
    "agent-host's socket": lambda: unix(at["host_socket"]),
    "PID 1's environment": lambda: read("/proc/%d/environ" % at["first"]),
    "PID 1's memory": lambda: read("/proc/%d/mem" % at["first"]),
    "PID 1's descriptors": lambda: os.readlink("/proc/%d/fd/0" % at["first"]),
    "a signal to PID 1": lambda: os.kill(at["first"], 0),
    "the API without a token": lambda: tcp(at["port"]),
    "list the journal": lambda: listed(at["journal"]),
    "put a file into the journal": lambda: made(at["journal"] + "/planted"),
    "read the table of agents": lambda: read(at["agents"] + "/agents.db"),
    "read another agent's file": lambda: read(at["theirs"]),
    "put a file beside it": lambda: made(at["theirs"] + ".planted"),
    "another agent's environment": lambda: read("/proc/%d/environ" % at["pid"]),
    "another agent's memory": lambda: read("/proc/%d/mem" % at["pid"]),
    "a signal to another agent": lambda: os.kill(at["pid"], 0),
}
def number(step):
    try:
        step()
    except OSError as error:
        return error.errno
    return 0
print(json.dumps({name: number(step) for name, step in steps.items()}))
"""
NEIGHBOUR = """
import os, time
path = os.path.join(os.environ["HOME"], "mine")
with open(path, "w") as file:
    file.write("mine")
print(path, flush=True)
time.sleep(1000)
"""


def agent_is_refused(box: Box) -> None:
    """The predicate, for a box whose slots work."""
    with client_of(box) as client:
        neighbour = client.agents.spawn(python_spec(box, NEIGHBOUR, name="neighbour"))
        try:
            theirs = wait_for(
                lambda: _first_line(client, neighbour.agent_id), 10, "the neighbour's path"
            )
            pid = client.agents.get(neighbour.agent_id).pid
            at = json.dumps(
                {
                    **places(box),
                    "first": box.first_pid(),
                    "port": API_PORT,
                    "theirs": theirs,
                    "pid": pid,
                }
            )
            outside = json.loads(box.python(ATTACK, at).out)
            run = client.agents.run_once(python_spec(box, ATTACK, at, name="attacker"))
        finally:
            client.agents.terminate(neighbour.agent_id, neighbour.generation, grace_s=0)
    assert run.exit.code == 0, run.stderr.decode()
    inside = json.loads(run.stdout)
    for step, code in inside.items():
        print(f"{step}: {errno.errorcode.get(code, code)}")
    assert [step for step, code in outside.items() if code] == [], (
        "these do not work outside of a sandbox either"
    )
    assert [step for step, code in inside.items() if code not in REFUSALS] == [], "an agent could"
    assert len(inside) == len(outside) > 20


def _first_line(client: Any, agent_id: str) -> str:
    items = client.agents.stream(agent_id, follow=False)
    return "".join(one.data.decode() for one in items if one.kind == "stdout").partition("\n")[0]


def test_rc_013(running: Box) -> None:
    """Twenty-one things, each refused; the box is ready afterwards, in the same boot."""
    before = running.verdict()["boot_id"]
    wait_served(running)
    agent_is_refused(running)
    assert running.wait_ready()["boot_id"] == before


@pytest.mark.parametrize("token", ["", "no-token", "0" * 64])
def test_rc_013_the_api_wants_a_token(running: Box, token: str) -> None:
    """A client that does reach it gets 401 from every route of agents without a token."""
    assert running.get("/v1/agents", token=token).status == 401
    assert running.get("/v1/agents", token=running.token()).status == 200
