"""Calls whose server asks: how often, how long, and how many at once."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agentbox.core.slot_errors import NotFound
from agentbox.mcphost import asking_call
from agentbox.mcphost.asking_call import AskingCall, QuestionRefused
from agentbox.mcphost.conversations import Conversations
from agentbox.mcphost.server_call import CallIdentity
from agentbox.policy.limits.mcp import QUESTIONS, WAITING_CALLS

FORM = {"type": "object", "properties": {"day": {"type": "string"}}}
DECLINE = {"action": "decline"}


def new_call(told: list[Mapping[str, Any]] | None = None) -> AskingCall:
    """One that may ask; events go to `told`."""
    return AskingCall("calc", "book", can_ask=True, tell=([] if told is None else told).append)


async def ask(call: AskingCall, times: int = 1, seconds: float = 5) -> dict[str, Any]:
    """What a server does that asks so often, one after another."""
    async with call.time_limit(seconds):
        answers = [dict(await call.ask("Which?", FORM)) for _ in range(times)]
    return {"answers": answers}


async def begin(conversations: Conversations, agent: str) -> tuple[str, CallIdentity]:
    """The state of a call of that agent that waits."""
    assert conversations.make_room(agent)
    identity, call = CallIdentity(agent, "calc", "book", ""), new_call()
    asked = await conversations.begin(identity, call, ask(call))
    return asked["requestState"], identity


@pytest.mark.limit("mcp_questions")
async def test_a_call_has_its_questions() -> None:
    """A further one is refused; another call has its own."""
    conversations, identity = Conversations(), CallIdentity("one", "calc", "book", "")
    call = new_call()
    turn = await conversations.begin(identity, call, ask(call, QUESTIONS + 1))
    for _ in range(QUESTIONS - 1):
        answers = dict.fromkeys(turn["inputRequests"], DECLINE)
        turn = await conversations.answer(turn["requestState"], identity, answers)
    other, whose = await begin(conversations, "two")
    with pytest.raises(QuestionRefused):
        await conversations.answer(turn["requestState"], identity, dict.fromkeys(turn["inputRequests"], DECLINE))  # fmt: skip
    done = await conversations.answer(other, whose, {"question-1": DECLINE})
    assert done == {"answers": [DECLINE]}


@pytest.mark.limit("mcp_waiting_calls")
async def test_a_call_too_many_ends_the_oldest() -> None:
    """Of the same agent; that of another still waits."""
    conversations = Conversations()
    other = await begin(conversations, "two")
    waiting = [await begin(conversations, "one") for _ in range(WAITING_CALLS + 1)]
    await asyncio.sleep(0)
    with pytest.raises(NotFound):
        await conversations.answer(*waiting[0], {"question-1": DECLINE})
    for one in (*waiting[1:], other):
        assert await conversations.answer(*one, {"question-1": DECLINE})
    assert conversations.make_room("one")


async def test_a_question_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than the call has; then the call is over and the server is told that it was cancelled."""
    monkeypatch.setattr(asking_call, "ASK_SECONDS", 0.2)
    told: list[Mapping[str, Any]] = []
    call = new_call(told)
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(TimeoutError):
        await ask(call, seconds=0.01)
    assert loop.time() - started >= 0.2
    assert call.is_paused
    assert told[0]["outcome"] == "withdrawn"


async def test_the_time_of_a_call_goes_on_after_the_answer() -> None:
    """It is not given anew with each question."""
    conversations, identity = Conversations(), CallIdentity("one", "calc", "book", "")
    call = new_call()

    async def work() -> dict[str, Any]:
        async with call.time_limit(0.2):
            await call.ask("Which?", FORM)
            await asyncio.Event().wait()
        return {}

    turn = await conversations.begin(identity, call, work())
    with pytest.raises(TimeoutError):
        await conversations.answer(turn["requestState"], identity, {"question-1": DECLINE})
    assert not call.is_paused


async def test_an_abandoned_call_leaves_nothing() -> None:
    """Also if it is abandoned twice, and only by its agent."""
    conversations = Conversations()
    state, identity = await begin(conversations, "one")
    await conversations.abandon(state, identity._replace(agent_id="two"))
    assert conversations._waiting
    await conversations.abandon(state, identity)
    await conversations.abandon(state, identity)
    assert not conversations._waiting
    assert not conversations._running
