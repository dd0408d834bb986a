"""`agentbox agent` against a real API and agent-host, as a user's shell sees it."""

import json

import pytest
from support.api_box import ApiBox
from test_run_command import agentbox

from agentbox.client import ApiError, BoxClient
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.id_argument import choose


def test_an_agent_from_start_to_stop(box: ApiBox, client: BoxClient) -> None:
    """Started, listed, shown with its grants, followed, stopped."""
    agent_id = agentbox(
        box,
        "agent",
        "spawn",
        "--profile",
        "readonly",
        "pal",
        "--",
        "sh",
        "-c",
        "echo hi; sleep 100",
    )
    identity = agent_id.stdout.decode().strip()
    assert (
        f"{identity}  running " in agentbox(box, "agent", "list", "--name", "pal").stdout.decode()
    )
    assert agentbox(box, "agent", "list", "--state", "exited", "--name", "pal").stdout == b""
    shown = agentbox(box, "agent", "show", identity[:20]).stdout.decode()
    assert "held  allow  fs  read  $WORKSPACE/**" in shown
    assert agentbox(box, "agent", "stop", "--grace", "0", identity).stdout.startswith(
        b"terminated  "
    )
    assert agentbox(box, "agent", "logs", identity).stdout == b"hi\n"
    assert client.agents.get(identity).state == "exited"


def test_an_id_that_nothing_has(box: ApiBox) -> None:
    """The beginning of no id is refused with the listing to look at."""
    for group, verb in (
        ("agent", "show"),
        ("approvals", "show"),
        ("review", "show"),
        ("sandbox", "show"),
        ("task", "show"),
    ):
        done = agentbox(box, group, verb, "ffffffff")
        assert done.returncode == 1
        assert b"ffffffff: no id begins with it" in done.stderr
        assert f"agentbox {group} list".encode() in done.stderr


def test_a_beginning_of_several_ids_is_refused() -> None:
    """With two of them."""
    with pytest.raises(AgentboxError, match="among them 01a and 01b") as refused:
        choose(["01a", "01b"], "agent", "01", "agent list")
    assert refused.value.exit_code is ExitCode.USAGE


def test_a_grant_is_revoked_by_its_id(box: ApiBox) -> None:
    """The command prints what the API returns; no output ever contains the agent's token."""
    made = agentbox(
        box,
        "--json",
        "agent",
        "spawn",
        "pal",
        "--",
        "sh",
        "-c",
        'echo "$AGENTBOX_TOKEN"; sleep 100',
    )
    identity = json.loads(made.stdout)["agent_id"]
    shown = agentbox(box, "--json", "agent", "show", identity)
    grants = json.loads(shown.stdout)["policy"]["grants"]
    tool = next(row["grant_id"] for row in grants if row["scope"] == "tool")
    assert agentbox(box, "agent", "revoke", identity, tool).stdout.startswith(
        f"{tool}  revoked".encode()
    )
    assert agentbox(box, "agent", "revoke", identity, "g_none").returncode != 0
    token = agentbox(box, "agent", "logs", identity).stdout.decode().strip()
    assert len(token) >= 43
    assert token not in shown.stdout.decode()
    agentbox(box, "agent", "stop", "--grace", "0", identity)


def test_a_terminal_is_joined_to_its_pipes(box: ApiBox) -> None:
    """Input is passed on, output is printed, the end of input ends the agent."""
    identity = agentbox(box, "agent", "spawn", "-i", "cat", "--", "cat").stdout.decode().strip()
    assert (
        agentbox(box, "agent", "attach", identity, given=b"to and fro\n").stdout == b"to and fro\n"
    )


def test_who_may_revoke(box: ApiBox, client: BoxClient) -> None:
    """Scope agents:write; agents:read is not enough."""
    agent = client.agents.spawn({"name": "pal", "argv": ["sleep", "100"], "profile": "sandboxed"})
    grant = next(
        row["grant_id"]
        for row in client.agents.get(agent.agent_id).policy["grants"]
        if row["scope"] == "tool"
    )
    token = client.tokens.create("reader", ["agents:read"]).value
    with box.client(token) as weak, pytest.raises(ApiError, match="agents:write"):
        weak.agents.revoke(agent.agent_id, grant)
    client.agents.terminate(agent.agent_id, agent.generation, grace_s=0)
