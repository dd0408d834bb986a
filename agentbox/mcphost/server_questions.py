"""What a server asks on its connection, which serves one agent: put to a call of that agent.

In revisions with a handshake it sends a request, which does not say to which call it belongs; in
the stateless one it ends a request with its questions, and gets it again with the answers.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import mcp_types as types
from mcp.client.context import ClientRequestContext
from mcp.client.session import ClientSession

from agentbox.mcphost.asking_call import AskingCall, QuestionRefused
from agentbox.mcphost.forms import CANCEL, InvalidForm

MAX_REFUSED: Final = 100  # requests since the last call began; then the connection is ended
_WAIT_SECONDS: Final = 0.1  # before a request is repeated that has no question
_REFUSED: Final = -32600  # what the SDK answers without a handler


class ServerQuestions:
    """`end` ends the connection."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end, self._refused = end, 0
        self._calls: list[AskingCall] = []  # in progress, by their beginning

    async def call(
        self,
        session: ClientSession,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float,
        asking: AskingCall,
    ) -> types.CallToolResult:
        """Raises TimeoutError, and RuntimeError for a server that asks what it may not."""
        self._refused = 0
        self._calls.append(asking)
        try:
            async with asking.time_limit(seconds):
                return await self._call(session, tool, arguments, asking)
        finally:
            self._calls.remove(asking)

    async def _call(
        self,
        session: ClientSession,
        tool: str,
        arguments: Mapping[str, Any],
        asking: AskingCall,
    ) -> types.CallToolResult:
        answers: types.InputResponses | None = None
        state: str | None = None
        while True:
            result = await session.call_tool(
                tool,
                dict(arguments),
                input_responses=answers,
                request_state=state,
                allow_input_required=True,
            )
            if isinstance(result, types.CallToolResult):
                return result
            answers, state = await self._answer_all(asking, result), result.request_state

    async def _answer_all(
        self, asking: AskingCall, result: types.InputRequiredResult
    ) -> types.InputResponses:
        requests = result.input_requests or {}
        try:
            if not requests:
                asking.count()
                await asyncio.sleep(_WAIT_SECONDS)
            found = await asyncio.gather(
                *(self._answer(asking, name, one) for name, one in requests.items())
            )
        except QuestionRefused as error:
            raise RuntimeError(str(error)) from error
        return dict(zip(requests, found, strict=True))

    async def _answer(
        self, asking: AskingCall, name: str, request: types.InputRequest
    ) -> types.ElicitResult:
        """Raises QuestionRefused; a client that takes no questions cancels them."""
        if not isinstance(request, types.ElicitRequest):
            raise QuestionRefused("it asks for more than the filling in of a form")
        if not isinstance(request.params, types.ElicitRequestFormParams):
            raise QuestionRefused("it wants an address to be opened")
        if not asking.can_ask:
            asking.count()
            return types.ElicitResult(**CANCEL)
        answer = await asking.ask(request.params.message, request.params.requested_schema, name)
        return types.ElicitResult(**answer)

    async def on_request(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Answers a request of a server. It belongs to the agent's last call that can ask."""
        try:
            asking = next((call for call in reversed(self._calls) if call.can_ask), None)
            if asking is None:
                raise QuestionRefused("no call is in progress whose client takes questions")
            if not isinstance(params, types.ElicitRequestFormParams):
                raise QuestionRefused("only forms are supported")
            answer = await asking.ask(params.message, params.requested_schema)
        except (QuestionRefused, InvalidForm) as error:
            self._refused += 1
            if self._refused > MAX_REFUSED:
                self._end()
            return types.ErrorData(code=_REFUSED, message=f"Elicitation refused: {error}")
        return types.ElicitResult(**answer)
