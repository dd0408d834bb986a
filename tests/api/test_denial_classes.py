"""Denials have a class: what everyday programs request is benign and raises no alert; what only an
attack requests is reported as such."""

import re
import sys
from collections import Counter

import httpx
from helpers import until
from support.api_box import ApiBox

from agentbox.client import BoxClient

SUITE = """
import getpass, multiprocessing, os, pathlib, pwd, socket, subprocess, sys, tempfile, threading
def test_files(tmp_path): (tmp_path / "a").write_text("a"); assert pwd.getpwuid(os.getuid()) and getpass.getuser()
def test_a_program(): assert subprocess.run(["id", "-un"], check=True, capture_output=True).stdout
def test_threads():
    thread = threading.Thread(target=tempfile.mkdtemp); thread.start(); thread.join()
def test_processes():
    process = multiprocessing.Process(target=os.getpid); process.start(); process.join(); assert process.exitcode == 0
def test_a_server():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]): pass
def test_a_pair():
    near, far = socket.socketpair(); near.close(); far.close()
"""
EVERY_DAY = (
    "ls -l /; set -e; id; git init -q repository; git -C repository status; if command -v pip; then pip --version; fi;"
    ' printf %s "$1" >test_own.py; "$0" -I -m pytest -q -p no:cacheprovider test_own.py'
)
ATTACKS = (
    "import ctypes, socket, sys; libc = ctypes.CDLL(None); libc.ptrace(0, 0, 0, 0); libc.unshare(0x10000000)\n"
    "try:\n    socket.create_connection(('127.0.0.1', int(sys.argv[1])))\nexcept OSError:\n    pass\n"
)
MANY = (
    "import socket\nfor _ in range(10):\n    try:\n        socket.socket(1, 1 | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)\n"
    "    except OSError:\n        pass\n"
)
_ROW = re.compile(
    r'agentbox_denied_total\{agent="([^"]*)",class="([^"]*)",layer="[^"]*",rule="([^"]*)"\} ([0-9.]+)'
)


def refused(box: ApiBox, name: str) -> Counter[tuple[str, str]]:
    """Of that agent, by class and rule, as /metrics has it."""
    rows = _ROW.findall(httpx.get(f"{box.metrics_url}/metrics", trust_env=False).text)
    return Counter(
        {(kind, rule): int(float(count)) for agent, kind, rule, count in rows if agent == name}
    )


def run(client: BoxClient, name: str, *argv: str) -> str:
    """The id of the agent, which has ended."""
    agent: str = client.call("spawn", body={"name": name, "argv": list(argv)})["handle"]["agent_id"]
    ended = ("exited", "failed")
    until(lambda: client.call("get_agent", {"id": agent})["state"] in ended, seconds=120)
    return agent


def reported_denials(client: BoxClient, agent: str) -> Counter[tuple[str, str]]:
    """What the journal has of it, once it records the end."""
    query = {"agent_id": agent, "limit": 1000}
    until(
        lambda: (
            "agent.exited"
            in [one["type"] for one in client.call("read_events", query=query)["events"]]
        )
    )
    found = client.call("read_events", query={**query, "types": "policy.denied"})["events"]
    return Counter(
        {(one["data"]["class"], one["data"]["rule"]): one["data"]["count"] for one in found}
    )


def test_programs_of_every_day_are_no_matter_of_policy(box: ApiBox, client: BoxClient) -> None:
    """A socket is refused as before, and the denial is counted."""
    agent = run(client, "everyday", "sh", "-c", EVERY_DAY, sys.executable, SUITE)
    until(lambda: refused(box, "everyday")["benign", "socket"])
    assert {kind for kind, _ in refused(box, "everyday")} == {"benign"}
    assert reported_denials(client, agent) == {}
    shown = client.call("get_agent", {"id": agent})
    assert (shown["exit"]["code"], shown["denials"]["reaper"]["socket"]) == (
        0,
        refused(box, "everyday")["benign", "socket"],
    )
    (ended,) = client.call("read_events", query={"agent_id": agent, "types": "agent.exited"})[
        "events"
    ]
    assert ended["data"]["quiet"] == shown["denials"]


def test_more_than_a_few_are_policy(box: ApiBox, client: BoxClient) -> None:
    """A process has four of them."""
    agent = run(client, "insists", "python3", "-I", "-c", MANY)
    until(lambda: refused(box, "insists")["policy", "socket"])
    assert refused(box, "insists") == {("benign", "socket"): 4, ("policy", "socket"): 6}
    until(lambda: reported_denials(client, agent) == {("policy", "socket"): 6})


def test_what_only_an_attack_asks_for(box: ApiBox, client: BoxClient) -> None:
    """Another process's memory and a port of the box; namespaces, which browsers try, are a matter of policy."""
    agent = run(client, "attacks", "python3", "-I", "-c", ATTACKS, str(box.plan.api.port))
    expected = {("attack", "ptrace"): 1, ("policy", "unshare"): 1, ("attack", "connect"): 1}
    until(lambda: refused(box, "attacks") == expected)
    until(lambda: reported_denials(client, agent) == expected)
