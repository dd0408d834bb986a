"""The complete record that `GET /v1/agents/{id}` returns for one agent, and what `/health` reports
about the box."""

from helpers import sh, until
from support.api_box import ApiBox

from agentbox.client import BoxClient
from agentbox.sandbox.report import MECHANISMS

SCRIPT = """
import signal, socket, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=5)
except PermissionError:
    open("made", "w").write("by the agent")
kept = bytearray(b"x") * (64 << 20)
while True:
    time.sleep(0.05)
"""


def test_one_agent_is_shown_whole(box: ApiBox, client: BoxClient) -> None:
    """While it runs: the isolation report, each limit with cap and peak, its grants, its open
    branch, and exact counts of its denials. After its end: the review that waits for the operator,
    and the same counts."""
    script = SCRIPT.format(port=box.plan.api.port)
    made = client.agents.spawn(
        {"name": "shown", "argv": ["python3", "-c", script], "profile": "sandboxed"}
    )
    found = until(lambda: (now := client.agents.get(made.agent_id)).denials and now)
    assert set(found.isolation) == set(MECHANISMS)
    assert all(
        row["state"] == "enforced"
        for name, row in found.isolation.items()
        if name in MECHANISMS[:6]
    )
    assert found.denials == {"reaper": {"connect": 1}}
    assert (found.policy["profile"], found.branch) == (
        "sandboxed",
        {"state": "open", "review": None},
    )
    used = until(lambda: (now := client.agents.get(made.agent_id).limits)["memory"]["peak"] and now)
    assert used["memory"]["cap"] >= used["memory"]["peak"] > 0
    assert all(set(row) == {"cap", "peak", "unit", "config_path"} for row in used.values())
    client.agents.signal(made.agent_id, made.generation, "USR1")
    over = until(lambda: (now := client.agents.get(made.agent_id)).state == "exited" and now)
    assert over.denials == {"reaper": {"connect": 1}}
    sealed = until(
        lambda: (now := client.agents.get(made.agent_id).branch)["state"] == "sealed" and now
    )
    assert (sealed["review"]["agent_id"], sealed["review"]["added"]) == (made.agent_id, 1)
    (listed,) = [
        one for one in client.agents.list(name="shown").items if one.agent_id == made.agent_id
    ]
    assert (listed.policy, listed.branch, listed.denials) == ({}, {}, over.denials)


def test_an_agent_that_writes_nothing_has_nothing_to_review(client: BoxClient) -> None:
    """Its branch ends with it; an agent that may not write has none."""
    made = client.agents.spawn(sh("exit 0"))
    until(lambda: client.agents.get(made.agent_id).branch["state"] == "over")
    read_only = client.agents.spawn({**sh("exit 0"), "profile": "readonly"})
    assert client.agents.get(read_only.agent_id).branch == {"state": "none", "review": None}


def test_health_names_the_programs_and_whether_it_is_a_development_box(client: BoxClient) -> None:
    """`dev` is what lets the profile `unrestricted` be used."""
    health = client.health()
    assert health.dev is False
    assert isinstance(health.programs, dict)
