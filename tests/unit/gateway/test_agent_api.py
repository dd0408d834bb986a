"""The agent API over HTTP, before a real API: what an agent may access, and what not."""

import json

import httpx
import pytest
from support.agent_api_caller import (
    FIRST_AGENT_ID,
    SECOND_AGENT_ID,
    AgentApiCaller,
)
from support.api_box import ApiBox
from support.fake_authorizer import right
from support.gateway_fixture import GatewayFixture

from agentbox.gateway.agent_api.errors import AgentApiError


async def test_hello_says_who_and_what(first_agent: AgentApiCaller) -> None:
    """Identity, rights, what is its own; never a token."""
    output = await first_agent.call("hello")
    assert (output["agent"]["id"], output["own"]["memory"], output["contracts"]["agent_api"]) == (
        FIRST_AGENT_ID,
        f"state.{FIRST_AGENT_ID}",
        "1.1.0",
    )
    assert output["policy"]["rights"][0]["scope"] == "tool"
    assert "sha256" not in json.dumps(output)


async def test_without_a_token_of_its_own_nobody_is_answered(
    agent_api: GatewayFixture, api: ApiBox
) -> None:
    """401 in the form of JSON-RPC; not with the gateway's own token either, and not in a cookie or a query."""
    for headers in (
        {},
        {"Authorization": "Bearer nobody"},
        {"Authorization": "Bearer a-token-of-this-boot"},
        {"Authorization": "Basic t1"},
    ):
        async with httpx.AsyncClient(trust_env=False) as http:
            output = await http.post(
                f"http://127.0.0.1:{agent_api.port}/rpc?token=t1", headers=headers, json={}
            )
        assert (output.status_code, output.json()["error"]["code"]) == (401, -32003)


async def test_beads_of_its_own(first_agent: AgentApiCaller, second_agent: AgentApiCaller) -> None:
    """Created, below own beads, and shared by tag; another agent's are neither shown nor changed."""
    epic = await first_agent.call("bead.create", title="mine")
    child = await first_agent.call("bead.create", title="part", parent_id=epic["id"])
    assert epic["creator"] == f"urn:agentbox:agent:{FIRST_AGENT_ID}"
    for bead in (epic, child):
        assert await second_agent.error_code("bead.show", id=bead["id"]) == "permission-denied"
        assert await second_agent.error_code("bead.close", id=bead["id"]) == "permission-denied"
        assert (
            await second_agent.error_code("bead.create", title="x", parent_id=bead["id"])
            == "permission-denied"
        )
    assert await second_agent.error_code("bead.claim", id=child["id"]) == "permission-denied"
    assert (
        await second_agent.error_code("bead.claim_next", parent_id=epic["id"])
        == "permission-denied"
    )
    assert await second_agent.error_code("bead.list", parent_id=epic["id"]) == "permission-denied"
    assert (
        await second_agent.error_code("bead.list", creator=f"urn:agentbox:agent:{FIRST_AGENT_ID}")
        == "permission-denied"
    )
    assert [bead["id"] for bead in (await second_agent.call("bead.list"))["items"]] == []
    assert [bead["id"] for bead in (await second_agent.call("bead.ready"))["items"]] == []
    assert await second_agent.call("bead.claim_next") is None
    input_value = await first_agent.call(
        "bead.create", title="for you", parent_id=epic["id"], tags=["for:one2"]
    )
    assert [bead["id"] for bead in (await second_agent.call("bead.ready"))["items"]] == [
        input_value["id"]
    ]
    claim = await second_agent.call("bead.claim_next")
    assert (claim["bead"]["id"], claim["bead"]["assignee"]) == (
        input_value["id"],
        f"urn:agentbox:agent:{SECOND_AGENT_ID}",
    )
    assert (
        await second_agent.call(
            "bead.close", id=input_value["id"], lease_id=claim["lease_id"], result={"n": 1}
        )
    )["outcome"] == "done"
    assert (await first_agent.call("bead.show", id=input_value["id"]))["result"] == {"n": 1}
    own = await first_agent.call("bead.claim", id=child["id"])
    await first_agent.call("bead.heartbeat", id=child["id"], lease_id=own["lease_id"])
    await first_agent.call("bead.release", id=child["id"], lease_id=own["lease_id"])
    assert await first_agent.error_code("bead.show", id="no-such-bead") == "not-found"


async def test_a_dedup_key_finds_no_bead_of_another(
    first_agent: AgentApiCaller, second_agent: AgentApiCaller, api: ApiBox
) -> None:
    """The same key of two agents is two beads, and a key that the box itself will use cannot be
    occupied before."""
    epic = await first_agent.call("bead.create", title="mine", body="private", dedup_key="nightly")
    assert (await first_agent.call("bead.create", title="again", dedup_key="nightly"))[
        "id"
    ] == epic["id"]
    other = await second_agent.call("bead.create", title="theirs", dedup_key="nightly")
    assert (other["id"] != epic["id"], other["body"]) == (True, "")
    schedule = await first_agent.call("bead.create", title="cron", every="PT1H")
    for key in (epic["dedup_key"], f"{schedule['id']}@2030-01-01T00:00:00.000Z"):
        assert (await second_agent.call("bead.create", title="squat", dedup_key=key))[
            "creator"
        ].endswith(SECOND_AGENT_ID)
    with api.client() as operator:
        made = operator.call(
            "create_epic", body={"title": "the operator's", "dedup_key": "nightly"}
        )
    assert made["title"] == "the operator's"


async def test_pods_below_its_own_container(
    first_agent: AgentApiCaller, second_agent: AgentApiCaller
) -> None:
    """A path is below state/<id>/, written or not; another's, and one that climbs, is refused."""
    assert (await first_agent.call("pod.write", path="notes/a.txt", content="text"))[
        "created"
    ] is True
    assert (await first_agent.call("pod.read", path=f"state/{FIRST_AGENT_ID}/notes/a.txt"))[
        "content"
    ] == "text"
    await first_agent.call("pod.write", path="raw", content_base64="/wA=")
    assert (await first_agent.call("pod.read", path="raw"))["content_base64"] == "/wA="
    assert "notes/" in json.dumps(await first_agent.call("pod.list"))
    assert await second_agent.error_code("pod.read", path="notes/a.txt") == "not-found"
    for path in (
        f"../{FIRST_AGENT_ID}/notes/a.txt",
        f"state/{SECOND_AGENT_ID}/../{FIRST_AGENT_ID}/notes/a.txt",
        f"/state/{FIRST_AGENT_ID}/notes/a.txt",
        "..",
        "a//b",
    ):
        assert await second_agent.error_code("pod.read", path=path) in (
            "validation",
            "not-found",
            "permission-denied",
        ), path
    await first_agent.call("pod.delete", path="notes/a.txt")
    half = "x" * 600_000
    await first_agent.call("pod.write", path="large", content=half)
    assert (await first_agent.call("pod.read", path="large"))["content"] == half
    assert await first_agent.error_code("pod.read", path="notes/a.txt") == "not-found"
    assert await first_agent.error_code("pod.write", path="x") == "validation"
    assert await first_agent.error_code("pod.write", path="", content="x") == "validation"


async def test_memory_in_its_own_namespace(
    first_agent: AgentApiCaller, second_agent: AgentApiCaller
) -> None:
    """Another state is another namespace; one cannot be named."""
    await first_agent.call("memory.store", key="k", value={"a": 1}, text="a fact about cheese")
    assert (await first_agent.call("memory.retrieve", key="k"))["value"] == {"a": 1}
    assert [
        hit["entry"]["key"]
        for hit in (await first_agent.call("memory.search", query="cheese", mode="text"))["hits"]
    ] == ["k"]
    assert await second_agent.error_code("memory.retrieve", key="k") == "not-found"
    assert (await second_agent.call("memory.search", query="cheese", mode="text"))["hits"] == []
    assert (
        await second_agent.error_code(
            "memory.search", query="cheese", namespaces=[f"state.{FIRST_AGENT_ID}"]
        )
        == "validation"
    )
    assert (
        await second_agent.error_code("memory.retrieve", key="k", ns=f"state.{FIRST_AGENT_ID}")
        == "validation"
    )
    assert [entry["key"] for entry in (await first_agent.call("memory.list"))["items"]] == ["k"]
    await first_agent.call("memory.delete", key="k")


async def test_events_of_its_own(first_agent: AgentApiCaller, second_agent: AgentApiCaller) -> None:
    """Its source stands on what it appends, and it reads no other; the core's types are not for it."""
    await first_agent.call("event.append", type="x.done", data={"n": 1})
    assert [
        event["data"] for event in (await first_agent.call("event.read", types="x.done"))["events"]
    ] == [{"n": 1}]
    assert (await second_agent.call("event.read", types="x.done"))["events"] == []
    assert await first_agent.error_code("event.append", type="agent.exited") == "validation"


@pytest.mark.parametrize(
    "kind",
    [
        "box.ready",
        "box",
        "boot",
        "box-ready",
        "box_ready.x",
        "readiness.changed",
        "agentbox.box.boot",
        "task",
    ],
)
async def test_an_event_of_an_agent_does_not_look_like_one_of_the_box(
    first_agent: AgentApiCaller, kind: str
) -> None:
    """A reader of types alone is not misled: the first word decides."""
    assert await first_agent.error_code("event.append", type=kind) == "validation"
    await first_agent.call("event.append", type=f"x-{kind}")


async def test_rights_decide_and_each_refusal_is_counted(
    agent_api: GatewayFixture, first_agent: AgentApiCaller
) -> None:
    """By the tool's name, in both spellings of a call; what no right allows is not in the list either."""
    agent_api.authorizer.set_rights(FIRST_AGENT_ID, [right("tool", "call", "memory/*")])
    assert {
        tool["name"].partition("/")[0] for tool in (await first_agent.call("tool.list"))["tools"]
    } == {"memory"}
    assert await first_agent.error_code("bead.create", title="x") == "permission-denied"
    assert (
        await first_agent.error_code("tool.invoke", name="bead/create", arguments={"title": "x"})
        == "permission-denied"
    )
    assert agent_api.authorizer.refusals == [(FIRST_AGENT_ID, "agent-api", "tool call")] * 2
    await first_agent.call("tool.invoke", name="memory/store", arguments={"key": "k", "value": 1})
    assert await first_agent.error_code("agent.spawn", name="somebody") == "permission-denied"


async def test_a_secret_that_was_given(
    agent_api: GatewayFixture,
    first_agent: AgentApiCaller,
    second_agent: AgentApiCaller,
    api: ApiBox,
) -> None:
    """By name, for agents that the manifest grants it."""
    api.paths.moved_secrets.mkdir(exist_ok=True)
    (api.paths.moved_secrets / "A_SECRET").write_text("the value")
    assert await first_agent.call("secret.get", name="A_SECRET") == {
        "name": "A_SECRET",
        "value": "the value",
    }
    assert await second_agent.error_code("secret.get", name="A_SECRET") == "permission-denied"
    assert (
        await first_agent.error_code("secret.get", name="../gateway.token") == "permission-denied"
    )
    assert agent_api.denied_rules == ["secret", "secret"]


async def test_only_the_gateway_calls_for_an_agent(api: ApiBox) -> None:
    """The header is refused from an admin and from anybody else, and the routes of operators from the gateway with it."""
    base = f"http://127.0.0.1:{api.plan.api.port}"
    named = {
        "Agentbox-On-Behalf-Of": f"{FIRST_AGENT_ID} {FIRST_AGENT_ID} {FIRST_AGENT_ID} {'a' * 32} one"
    }
    core = {"Authorization": "Bearer a-token-of-this-boot"}
    admin = {"Authorization": f"Bearer {api.paths.api_key.read_text()}"}
    async with httpx.AsyncClient(base_url=base, trust_env=False) as http:
        assert (await http.get("/v1/beads", headers={**admin, **named})).status_code == 403
        assert (await http.get("/v1/beads", headers={**core, **named})).status_code == 200
        for line in (
            "GET /v1/events/stream",
            "GET /v1/tokens",
            "GET /v1/tasks",
            "POST /v1/drain",
            "GET /v1/events/0",
        ):
            denied = await http.request(*line.split(), headers={**core, **named})
            assert denied.status_code == 403, line
        for odd in (
            "one",
            f"{FIRST_AGENT_ID} ../x",
            f"{FIRST_AGENT_ID} a/b",
            FIRST_AGENT_ID,
            f"x{FIRST_AGENT_ID} one",
        ):
            assert (
                await http.get("/v1/beads", headers={**core, "Agentbox-On-Behalf-Of": odd})
            ).status_code == 400
        assert (
            await http.get(f"/v1/memory/ns/state.{SECOND_AGENT_ID}/keys", headers={**core, **named})
        ).status_code == 403
        assert (
            await http.get(
                f"/v1/pods/state/{SECOND_AGENT_ID}/x", headers={**core, **named, "Accept": "*/*"}
            )
        ).status_code == 403


async def test_a_message_from_before_the_end_of_its_agent(
    agent_api: GatewayFixture, first_agent: AgentApiCaller
) -> None:
    """Its remaining calls are refused: a former identity is no right."""
    caller = agent_api.authorizer.identify("t1")
    agent_api.authorizer.remove(FIRST_AGENT_ID)
    for method, params in (("secret.get", {"name": "A_SECRET"}), ("agent.list", {}), ("hello", {})):
        with pytest.raises(AgentApiError):
            await agent_api.server._agent_api.call(caller, method, params)
