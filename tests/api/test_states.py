"""States by name: who may share one, what is removed with it, how long it stays, and data from
before states existed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import agentbox
from helpers import read_all, spec, until
from state_calls import bearer, end, journal, refused_as, token_of
from support.api_box import ApiBox
from support.gateway_box import GatewayBox
from support.plans import plan_of

from agentbox.client import AgentApiClient, ApiError, BoxClient
from agentbox.contracts.states import StateHolds
from agentbox.plan.tables import StatePlan

SAYS_TOKEN = 'echo "$AGENTBOX_TOKEN"; exec sleep 1000'
MANIFEST = f"""
[agents.coder]
command = ["sh", "-c", '{SAYS_TOKEN}']
max_instances = 5
[agents.crew]
command = ["sh", "-c", '{SAYS_TOKEN}']
state = "shared"
[agents.team]
command = ["sh", "-c", '{SAYS_TOKEN}']
max_instances = 5
state = "shared"
"""


@pytest.fixture(scope="module")
def gateway(box: ApiBox) -> Iterator[GatewayBox]:
    with GatewayBox(box.paths.prefix, box.plan) as found:
        yield found


@pytest.fixture(scope="module")
def box(prefix: Path) -> Iterator[ApiBox]:
    found = ApiBox(prefix, agents=plan_of(MANIFEST).agents)
    found.paths.token("gateway").parent.mkdir(parents=True, exist_ok=True)
    found.paths.token("gateway").write_text("a-token-of-this-boot")
    with found:
        yield found


@pytest.fixture
def lives(client: BoxClient, gateway: GatewayBox) -> Iterator[Callable[..., Any]]:
    """Starts an agent and connects to its agent API: `(agent, agent_api)`."""
    agent_apis: list[AgentApiClient] = []
    made: list[str] = []

    def start(caller: BoxClient = client, **more: Any) -> tuple[Any, AgentApiClient]:
        agent = caller.agents.spawn(
            spec("sh", "-c", SAYS_TOKEN) | more if "agent" not in more else more
        )
        made.append(agent.agent_id)
        agent_apis.append(
            AgentApiClient(f"http://127.0.0.1:{gateway.port}", token_of(client, agent.agent_id))
        )
        return agent, agent_apis[-1]

    yield start
    for agent_api in agent_apis:
        agent_api.close()
    for agent_id in made:
        end(client, agent_id)


def test_a_command_has_no_identity_of_the_manifest(lives: Callable[..., Any]) -> None:
    """A program that an admin runs under an agent's name gets no table: no `for:` tag, no children,
    none of its limits; `agent` does."""
    adhoc, agent_api = lives(name="coder")
    assert agent_api.hello()["own"]["beads"] == ""
    assert adhoc.spec.agent == ""
    named, agent_api = lives(name="x", agent="coder")
    assert agent_api.hello()["own"]["beads"] == "for:coder"
    assert named.spec.argv[:2] == ("sh", "-c")


def test_runs_of_one_name_share_and_others_do_not(lives: Callable[..., Any]) -> None:
    """Memory and pods, also of programs that differ; a run of the same program without the name has its own."""
    first, one = lives(state="night")
    one.call("memory.store", key="k", value="shared")
    one.call("pod.write", path="a/b", content="shared")
    second, two = lives(name="other", state="night")
    assert (first.state_id, two.call("memory.retrieve", key="k")["value"]) == (
        second.state_id,
        "shared",
    )
    assert two.call("pod.read", path="a/b")["content"] == "shared"
    _, alone = lives()
    assert alone.call("memory.list")["items"] == []


def test_an_agent_of_the_manifest_shares_where_its_table_says_so(lives: Callable[..., Any]) -> None:
    """`state = "shared"`; the default is a state of each run."""
    assert lives(name="a", agent="team")[0].state_id == lives(name="b", agent="team")[0].state_id
    assert lives(name="a", agent="coder")[0].state_id != lives(name="b", agent="coder")[0].state_id


def test_a_name_belongs_to_who_made_it(
    box: ApiBox, client: BoxClient, lives: Callable[..., Any]
) -> None:
    """Another token neither uses, sees nor removes it; an admin may; a second token of one name is one holder."""
    with bearer(box, client, "maker") as maker, bearer(box, client, "other") as other:
        agent, _ = lives(maker, state="mine")
        for refused in (
            lambda: other.agents.spawn(spec("true", state="mine")), lambda: other.states.show("mine"), lambda: other.states.remove("mine"),
            lambda: other.states.show(agent.state_id), lambda: other.states.remove(agent.state_id),
        ):  # fmt: skip
            assert refused_as(refused) == "state-not-yours"
        assert "mine" not in [one.name for one in other.states.list().items]
        assert [one.name for one in maker.states.list().items] == ["mine"]
        task = other.submit_task(spec("true", state="mine"))
        assert "it belongs to another token" in read_all(other, task.task_id)[1].note
        assert lives(client, state="mine")[0].state_id == agent.state_id
        with bearer(box, client, "maker") as again:
            assert again.states.show("mine").state_id == agent.state_id


def test_an_admin_is_told_whose_state_a_name_is(
    box: ApiBox, client: BoxClient, lives: Callable[..., Any]
) -> None:
    """A token may have created that name first, and left data there."""
    with bearer(box, client, "earlier") as earlier:
        lives(earlier, state="build")
        done = agentbox(box, "run", "--name", "build", "--", "true")
        assert done.returncode == 0, done.stderr
        assert b"state build belongs to urn:agentbox:token:earlier" in done.stderr
        done = agentbox(box, "run", "--name", "own", "--", "true")
        assert b"belongs to" not in done.stderr


def test_a_name_that_looks_like_an_id_hides_no_state(
    box: ApiBox, client: BoxClient, lives: Callable[..., Any]
) -> None:
    """A caller that knows the id of a state shows and removes that one, whatever another token uses
    as a name."""
    agent, agent_api = lives()
    agent_api.call("memory.store", key="k", value="of the first")
    with bearer(box, client, "squatter") as squatter:
        squatter.agents.run_once(spec("true", state=agent.state_id))
        assert refused_as(lambda: squatter.states.show(agent.state_id)) == "state-not-yours"
        (own,) = squatter.states.list().items
    assert client.states.show(agent.state_id).holds == StateHolds(memory=1, pods=0)
    assert client.states.show(own.state_id).name == agent.state_id


def test_a_task_by_a_token_makes_the_name_its_own(box: ApiBox, client: BoxClient) -> None:
    """The submitter is the owner, though the box starts the agent."""
    with bearer(box, client, "submitter") as token:
        assert (
            read_all(token, token.submit_task(spec("true", state="of-a-task")).task_id)[1].state
            == "succeeded"
        )
        assert token.states.show("of-a-task").owner == "urn:agentbox:token:submitter"


def test_a_state_goes_whole_and_not_while_somebody_lives(
    box: ApiBox, client: BoxClient, lives: Callable[..., Any]
) -> None:
    """`state-busy` names the running agent; then memory and pods are removed, with their counts in
    the journal, and the name is free."""
    agent, agent_api = lives(state="gone")
    for n in range(3):
        agent_api.call("memory.store", key=f"k{n}", value=n)
    agent_api.call("pod.write", path="deep/er/x", content="x")
    with pytest.raises(ApiError) as caught:
        client.states.remove("gone")
    assert (caught.value.code, caught.value.problem["agents"]) == ("state-busy", [agent.agent_id])
    assert client.states.show("gone").holds == StateHolds(memory=3, pods=1)
    end(client, agent.agent_id)
    done = agentbox(box, "--json", "state", "reset", "-y", "gone")
    assert json.loads(done.stdout) == {"memory": 3, "pods": 1}, done.stderr
    assert refused_as(lambda: client.states.show("gone")) == "not-found"
    assert client.memory.list(namespace=f"state.{agent.state_id}").items == ()
    assert refused_as(lambda: client.pods.read(f"state/{agent.state_id}/deep/er/x")) == "not-found"
    removed = [event for event in journal(client) if event["type"] == "state.removed"]
    assert removed[-1]["data"] | {"label": ""} == {
        "state_id": agent.state_id, "name": "gone", "label": "", "memory": 3, "pods": 1, "by": "urn:agentbox:operator",
    }  # fmt: skip
    _, agent_api = lives(state="gone")
    assert agent_api.call("memory.list")["items"] == []


def test_a_restart_keeps_the_state(
    lives: Callable[..., Any], client: BoxClient, gateway: GatewayBox
) -> None:
    """A new generation is not a new state, and finds the data of the previous one; a child has its
    own."""
    script = 'echo "$AGENTBOX_TOKEN"; read -r line; exit 1'
    agent, agent_api = lives(argv=["sh", "-c", script], stdin="pipe", restart="on-failure")
    agent_api.call("pod.write", path="left", content="kept")
    child = client.agents.spawn(spec("true", parent_id=agent.agent_id))
    assert child.state_id not in ("", agent.state_id)
    with client.agents.attach(agent.agent_id, 1) as pipe:
        pipe.send(b"go\n")
        until(lambda: client.agents.get(agent.agent_id).generation == 2)
    assert client.agents.get(agent.agent_id).state_id == agent.state_id
    with AgentApiClient(
        f"http://127.0.0.1:{gateway.port}", token_of(client, agent.agent_id, line=1)
    ) as again:
        assert again.call("pod.read", path="left")["content"] == "kept"


def test_prune_takes_what_has_no_name_and_no_life(
    box: ApiBox, client: BoxClient, lives: Callable[..., Any]
) -> None:
    """Named states and those in use stay; `list` and `show` print the existing ones."""
    named, _ = lives(state="stays")
    over = client.agents.run_once(spec("true"))
    assert over.exit.code == 0
    alive, _ = lives()
    assert b"stays" in agentbox(box, "state", "list").stdout
    assert b"0 memory items and 0 pods" in agentbox(box, "state", "show", "stays").stdout
    done = agentbox(box, "--json", "state", "prune", "-y")
    gone = {row["state_id"] for row in json.loads(done.stdout)}
    assert gone
    kept = {one.state_id for one in client.states.list(limit=500).items}
    assert {named.state_id, alive.state_id} <= kept
    assert not gone & kept


def test_what_was_left_under_a_name_is_adopted(
    box: ApiBox, client: BoxClient, lives: Callable[..., Any]
) -> None:
    """Nobody can read it before; afterwards runs of that name can; adopting the same name again is
    refused."""
    client.memory.store("k", "old", namespace="agent.coder", metadata={"n": 1}, ttl_s=1000)
    client.pods.write("agents/coder/notes/a", b"old", content_type="text/plain")
    _, agent_api = lives(name="coder", agent="coder")
    assert agent_api.call("memory.list")["items"] == []
    assert agentbox(box, "state", "list", "--legacy").stdout == b"legacy.coder\n"
    assert refused_as(lambda: client.states.adopt("legacy.none", "x")) == "not-found"
    lives(state="used")
    assert refused_as(lambda: client.states.adopt("legacy.coder", "used")) == "name-taken"
    done = agentbox(box, "state", "adopt", "--name", "taken-over", "legacy.coder")
    assert done.stdout == b"legacy.coder is taken-over now: 1 memory item and 1 pod\n", done.stderr
    _, agent_api = lives(state="taken-over")
    entry = agent_api.call("memory.retrieve", key="k")
    assert (entry["value"], entry["metadata"], entry["expires_at"] is None) == (
        "old",
        {"n": 1},
        False,
    )
    assert agent_api.call("pod.read", path="notes/a")["content"] == "old"
    client.memory.store("k", "of the crew", namespace="agent.crew")
    assert agentbox(box, "state", "adopt", "--agent", "crew", "legacy.crew").returncode == 0
    assert (
        lives(name="crew", agent="crew")[1].call("memory.retrieve", key="k")["value"]
        == "of the crew"
    )
    assert client.states.list(legacy=True).legacy == ()


@pytest.mark.parametrize("name", ["", "a/b", "agents.team", "legacy.x", "A", "x" * 65, "a b"])
def test_no_name_is_another_kind_of_state(client: BoxClient, name: str) -> None:
    """What a caller may choose has no dot: the shared state of an agent is not reached by its name."""
    if name:
        assert refused_as(lambda: client.agents.spawn(spec("true", state=name))) == "validation"
    assert refused_as(
        lambda: client.states.adopt("legacy.x", name.replace("agents.team", "agents.none"))
    ) in (
        "validation",
        "not-found",
    )


def test_states_of_runs_go_after_keep_days(own_box: Callable[..., ApiBox]) -> None:
    """0: once the run has ended. An interrupted removal is completed. A named one stays."""
    box = own_box(state=StatePlan(keep_days=0))
    with box.client() as client:
        client.agents.run_once(spec("true", state="stays"))
        task = client.submit_task(spec("true"))
        agent_id = read_all(client, task.task_id)[1].agent_id
        state_id = client.agents.get(agent_id).state_id
        client.memory.store("k", 1, namespace=f"state.{state_id}")
        box.stop()
        box.start()
    with box.client() as client:
        until(lambda: [event for event in journal(client) if event["type"] == "state.removed"])
        assert [one.name for one in client.states.list().items] == ["stays"]
        assert client.memory.list(namespace=f"state.{state_id}").items == ()
        removed = [event["data"] for event in journal(client) if event["type"] == "state.removed"]
    assert [(one["state_id"], one["memory"], one["by"]) for one in removed] == [
        (state_id, 1, "state.keep_days")
    ]
