"""MCP servers that ask the calling agent: over the official client in both eras, and servers and agents that try more
than they may."""

import asyncio
import json
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import mcp_types as types
import pytest
from helpers import until
from support.mcp_askers import ASKER, SDK_ASKER
from support.mcp_box import McpBox
from support.mcp_turns import FORMS, TUESDAY, answer, client, raw, said

from agentbox.core.canonical import canonical_json, digest

PURELIB = sysconfig.get_path("purelib")
PRINTS_TOKEN = """["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']"""
CALL_SECONDS = 2
MANIFEST = f"""
[agents.user]
command = {PRINTS_TOKEN}
max_instances = 8
mcp = ["asker", "sdk", "silent"]
[policies.sdk]
base = "service"
fs = [{{ mode = "allow", operations = ["read"], patterns = ["{PURELIB}/**", "{sys.base_prefix}/**"] }}]
[mcp.servers.asker]
command = ["/usr/bin/python3", "-c", '''{ASKER}''']
pin = "first-use"
elicitation = true
call_seconds = {CALL_SECONDS}
[mcp.servers.silent]
command = ["/usr/bin/python3", "-c", '''{ASKER}''']
pin = "first-use"
[mcp.servers.sdk]
command = ["{Path(sys.executable).resolve()}", "-I", "-c", '''{SDK_ASKER.format(paths=[PURELIB])}''']
profile = "sdk"
pin = "first-use"
elicitation = true
"""


@pytest.fixture(scope="module")
def mcp(prefix: Path) -> Iterator[McpBox]:
    with McpBox(prefix, MANIFEST) as box:
        yield box


@pytest.fixture(scope="module")
def token(mcp: McpBox) -> str:
    return mcp.token("user")


def call(
    box: McpBox, token: str, mode: str, tool: str, reply: types.ElicitResult | None
) -> tuple[str, list[Any]]:
    """The text of the result of a call by the official client, and what it was asked."""
    asked: list[Any] = []

    async def run() -> str:
        async with client(box, token, mode, reply, asked) as opened:
            result = await opened.call_tool(tool, {})
            return str(result.content[0].text)  # type: ignore[union-attr]

    return asyncio.run(run()), asked


ACCEPT = types.ElicitResult(action="accept", content={"day": "Tuesday"})


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_answers(mcp: McpBox, token: str, mode: str) -> None:
    """In both eras: what a server without a library asks, and what one of the official SDK does."""
    text, asked = call(mcp, token, mode, "asker__book", ACCEPT)
    assert json.loads(text) == TUESDAY
    assert asked[0].message == "The MCP server asker asks: Which day?"
    assert asked[0].requested_schema["properties"] == {"day": {"type": "string", "title": "Day"}}
    name = types.ElicitResult(action="accept", content={"name": "Ada"})
    assert call(mcp, token, mode, "sdk__greet", name)[0] == "Hello, Ada"
    declined, asked = call(mcp, token, mode, "asker__twice", types.ElicitResult(action="decline"))
    assert json.loads(declined) == [{"action": "decline"}] * 2
    assert len(asked) == 2


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_client_that_takes_no_questions(mcp: McpBox, token: str, mode: str) -> None:
    """The server is refused at once, and the call goes on."""
    text, _ = call(mcp, token, mode, "asker__book", None)
    assert json.loads(text)["code"] == -32600


def test_it_is_offered_forms_alone(mcp: McpBox, token: str) -> None:
    """And nothing without the row: there it is refused as ever."""
    assert said(mcp.call(token, "asker__heard"))[0] == {"elicitation": {"form": {}}}
    assert said(mcp.call(token, "silent__heard"))[0] == {}
    assert "not supported" in said(raw(mcp, token, "silent__book"))["message"]


@pytest.mark.parametrize(
    ("tool", "reason"),
    [("huge", "16384 bytes"), ("nested", "a field is neither"), ("address", "only forms")],
)
def test_what_is_no_form_is_not_asked(mcp: McpBox, token: str, tool: str, reason: str) -> None:
    """The server gets an error, and the agent nothing to see of it."""
    assert reason in said(raw(mcp, token, f"asker__{tool}"))["message"]


def test_what_is_shown_shows_its_invisible_characters(mcp: McpBox, token: str) -> None:
    """As escapes, in the message and in the form."""
    result = raw(mcp, token, "asker__hidden")
    (question,) = result["inputRequests"].values()
    assert question["params"]["message"].endswith(r"x\u200by")
    assert question["params"]["requestedSchema"]["properties"]["a"]["title"] == r"A\u202eB"
    answer(mcp, token, "asker__hidden", result, {"action": "cancel"})


def test_a_server_that_asks_without_end(mcp: McpBox, token: str) -> None:
    """The agent is asked eight times, the other requests are refused."""
    asked = raw(mcp, token, "asker__thousand")
    while "inputRequests" in asked:
        asked = answer(mcp, token, "asker__thousand", asked)
    answers = said(asked)
    assert answers.count(TUESDAY) == 8
    assert len([one for one in answers if "code" in one]) == 42


def test_an_answer_is_of_the_agent_that_was_asked(mcp: McpBox, token: str) -> None:
    """Not of another, nor to another call, nor twice, nor after the call has ended."""
    asked = raw(mcp, token, "asker__book")
    other = mcp.token("user")
    assert answer(mcp, other, "asker__book", asked)["code"] == -32602
    assert answer(mcp, token, "asker__twice", asked)["code"] == -32602
    changed = answer(mcp, token, "asker__book", asked, arguments={"a": 1})
    assert "no call waits" in changed["message"]
    bad = answer(mcp, token, "asker__book", asked, {"action": "accept", "content": {"day": 7}})
    assert (bad["code"], "/day" in bad["message"]) == (-32602, True)
    assert said(answer(mcp, token, "asker__book", asked)) == TUESDAY
    assert answer(mcp, token, "asker__book", asked)["code"] == -32602


def test_a_question_that_is_not_answered_is_asked_again(mcp: McpBox, token: str) -> None:
    """With a new state: the one before is used up."""
    asked = raw(mcp, token, "asker__book")
    again = raw(mcp, token, "asker__book", inputResponses={"x": {}}, requestState=asked["requestState"])  # fmt: skip
    assert again["inputRequests"] == asked["inputRequests"]
    assert answer(mcp, token, "asker__book", asked)["code"] == -32602
    assert said(answer(mcp, token, "asker__book", again)) == TUESDAY


def test_the_time_of_a_call_stands_still_while_it_asks(mcp: McpBox, token: str) -> None:
    """Longer than the call may take; afterwards it goes on."""
    asked = raw(mcp, token, "asker__slow")
    began = time.monotonic()
    until(lambda: time.monotonic() - began > CALL_SECONDS, 10)
    assert said(answer(mcp, token, "asker__slow", asked)) == TUESDAY


def test_outside_of_a_call_nobody_is_asked(mcp: McpBox, token: str) -> None:
    """A server that asks when its call is over is refused."""
    raw(mcp, token, "asker__late")
    heard = until(lambda: [one for one in said(raw(mcp, token, "asker__heard")) if "no call" in str(one)], 10)  # fmt: skip
    assert heard[0]["code"] == -32600


def test_a_server_that_ends_ends_the_question(mcp: McpBox, token: str) -> None:
    """The answer comes too late."""
    agent = mcp.token("user")
    asked = raw(mcp, agent, "asker__die")
    assert "inputRequests" in asked
    assert "mcp-unavailable" in json.dumps(raw(mcp, agent, "asker__heard"))
    assert answer(mcp, agent, "asker__die", asked)["code"] == -32602


def test_a_call_too_many_ends_the_oldest_that_waits(mcp: McpBox, token: str) -> None:
    """Eight calls of an agent wait; the ninth takes the place of the first."""
    asked = [raw(mcp, token, "sdk__greet") for _ in range(9)]
    ada = {"action": "accept", "content": {"name": "Ada"}}
    assert answer(mcp, token, "sdk__greet", asked[0], ada)["code"] == -32602
    for one in asked[1:]:
        assert answer(mcp, token, "sdk__greet", one, ada)["content"][0]["text"] == "Hello, Ada"


def test_an_answer_on_a_stream_is_of_the_same_agent(mcp: McpBox, token: str) -> None:
    """In revisions with a handshake the id of the question is known to its reader; another agent's answer is refused,
    and so is a second one. A client that leaves ends its call."""
    other = mcp.token("user")
    url = f"http://127.0.0.1:{mcp.port}/mcp"
    with httpx.Client(trust_env=False, timeout=30) as http:

        def post(sender: str, **message: Any) -> httpx.Response:
            body = {"jsonrpc": "2.0", **message}
            return http.post(url, json=body, headers={"Authorization": f"Bearer {sender}"})

        params = {"protocolVersion": "2025-11-25", "capabilities": FORMS}
        session = post(token, id=1, method="initialize", params=params).headers["mcp-session-id"]
        none = {"protocolVersion": "2025-11-25", "capabilities": {}}
        assert "mcp-session-id" not in post(token, id=1, method="initialize", params=none).headers
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Mcp-Session-Id": session,
        }
        body = {
            "jsonrpc": "2.0",
            "id": 5,
            "method": "tools/call",
            "params": {"name": "asker__book"},
        }
        with http.stream("POST", url, json=body, headers=headers) as stream:
            data = (json.loads(line[6:]) for line in stream.iter_lines() if line[:6] == "data: ")
            question = next(data)
            assert question["method"] == "elicitation/create"
            assert post(other, id=question["id"], result=TUESDAY).status_code == 400
            assert post(token, id=question["id"], result=TUESDAY).status_code == 202
            assert post(token, id=question["id"], result=TUESDAY).status_code == 400
            assert said(next(data)["result"]) == TUESDAY
        with http.stream("POST", url, json=body, headers=headers) as stream:
            next(line for line in stream.iter_lines() if line.startswith("data: "))

    def cancelled() -> bool:
        return any(one["data"]["outcome"] == "cancelled" for one in mcp.events("mcp.called"))

    assert until(cancelled, 10)


def test_a_killed_mcp_host_forgets_its_questions(mcp: McpBox, token: str) -> None:
    """The answer is refused, and the next call asks again."""
    asked = raw(mcp, token, "asker__book")
    mcp.host.kill()
    mcp.host.start()
    until(lambda: answer(mcp, token, "asker__book", asked).get("code") == -32602, 20)
    again = until(lambda: raw(mcp, token, "asker__book"), 10)
    assert said(answer(mcp, token, "asker__book", again)) == TUESDAY


def test_questions_are_in_the_journal(mcp: McpBox, token: str) -> None:
    """With digests, not with texts."""
    secret = {"action": "accept", "content": {"day": "Doomsday"}}
    answer(mcp, token, "asker__book", raw(mcp, token, "asker__book"), secret)
    expected = digest(canonical_json(secret))

    def told() -> Any:
        found = mcp.events("mcp.asked")
        return next((one for one in found if one["data"]["answer"] == expected), None)

    event = until(told, 10)
    data = event["data"]
    assert (data["server"], data["tool"], data["outcome"]) == ("asker", "book", "accept")
    assert data["question"].startswith("sha256:")
    assert event["agent_id"]
    assert "Doomsday" not in json.dumps(mcp.events("mcp.asked"))
