"""Calls that wait for an agent's answers. Each turn ends with a result, or with questions and a
state that is good for one answer of the same agent to the same call.
"""

import asyncio
import secrets
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentbox.core.slot_errors import NotFound, ValidationError
from agentbox.mcphost.asking_call import AskingCall
from agentbox.mcphost.forms import InvalidForm, check_answer
from agentbox.mcphost.server_call import CallIdentity
from agentbox.policy.limits.mcp import WAITING_CALLS

METHOD: Final = "elicitation/create"


@dataclass(frozen=True)
class _Conversation:
    identity: CallIdentity
    call: AskingCall
    task: "asyncio.Task[dict[str, Any]]"


class Conversations:
    """For one event loop."""

    def __init__(self) -> None:
        self._running: dict[str, int] = {}  # by agent
        self._waiting: dict[str, _Conversation] = {}  # by state

    def make_room(self, agent_id: str) -> bool:
        """Whether a further call of that agent may ask. If as many wait as may, the one that waits
        longest is ended: an agent need not say that it will not answer."""
        if self._running.get(agent_id, 0) < WAITING_CALLS:
            return True
        for conversation in self._waiting.values():
            if conversation.identity.agent_id == agent_id:
                conversation.task.cancel()
                return True
        return False

    async def begin(
        self, identity: CallIdentity, call: AskingCall, work: Coroutine[Any, Any, dict[str, Any]]
    ) -> dict[str, Any]:
        """The first turn of a call that `work` makes. Raises what it raises."""
        if call.can_ask:
            self._running[identity.agent_id] = self._running.get(identity.agent_id, 0) + 1
        task = asyncio.create_task(work, name="call of an MCP server that may ask")
        conversation = _Conversation(identity, call, task)
        task.add_done_callback(lambda _: self._end(conversation))
        return await self._turn(conversation)

    async def answer(
        self, state: str, identity: CallIdentity, answers: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The next turn. Questions without an answer are asked again. Raises NotFound unless that
        call waits in that state, ValidationError for an answer that its form does not allow, and
        what the call raises."""
        conversation = self._find(state, identity)
        questions = conversation.call.waiting
        try:
            given = {
                name: check_answer(question.form, answers[name])
                for name, question in questions.items()
                if name in answers
            }
        except InvalidForm as error:
            raise ValidationError(
                f"cannot take the answer: {error}",
                errors=[{"pointer": "/inputResponses", "detail": str(error)}],
            ) from error
        del self._waiting[state]
        for name, one in given.items():
            questions[name].answer.set_result(one)
        return await self._turn(conversation)

    async def abandon(self, state: str, identity: CallIdentity) -> None:
        """Ends a call whose agent will not answer; does nothing if it has ended."""
        try:
            conversation = self._find(state, identity)
        except NotFound:
            return
        conversation.task.cancel()
        await asyncio.wait({conversation.task})

    def _find(self, state: str, identity: CallIdentity) -> _Conversation:
        found = self._waiting.get(state)
        if found is None or found.identity != identity:
            raise NotFound(
                "cannot take the answer: no call waits for it; it may have ended, or been answered",
                resource="question",
                id="",
            )
        return found

    async def _turn(self, conversation: _Conversation) -> dict[str, Any]:
        call, task = conversation.call, conversation.task
        while not (call.waiting or task.done()):
            call.changed.clear()
            asked = asyncio.create_task(call.changed.wait())
            try:
                await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:  # the agent has gone
                task.cancel()
                raise
            finally:
                asked.cancel()
        if task.done():
            return task.result()
        state = secrets.token_urlsafe(24)
        self._waiting[state] = conversation
        return {
            "resultType": "input_required",
            "inputRequests": {
                name: {"method": METHOD, "params": question.form}
                for name, question in call.waiting.items()
            },
            "requestState": state,
        }

    def _end(self, conversation: _Conversation) -> None:
        agent_id = conversation.identity.agent_id
        if conversation.call.can_ask:
            self._running[agent_id] -= 1
            if not self._running[agent_id]:
                del self._running[agent_id]
        ended = [state for state, one in self._waiting.items() if one is conversation]
        for state in ended:
            del self._waiting[state]
        if not conversation.task.cancelled():
            conversation.task.exception()  # nobody may ask for the result any more
