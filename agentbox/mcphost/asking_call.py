"""One call whose server may put questions to the agent that made it. Its time stands still while a
question waits for an answer, which has a time of its own.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentbox.core.canonical import canonical_json, digest
from agentbox.mcphost.forms import CANCEL, make_form
from agentbox.policy.limits.mcp import QUESTIONS

ASK_SECONDS: Final = 600.0  # a question waits
_NAME: Final = re.compile("[A-Za-z0-9_-]{1,64}")
Tell = Callable[[Mapping[str, Any]], None]
"""Takes the data of an event about a question."""


class QuestionRefused(Exception):
    """The server may not ask this. The text is for it."""


def _new_answer() -> "asyncio.Future[Mapping[str, Any]]":
    return asyncio.get_running_loop().create_future()


@dataclass(frozen=True)
class Question:
    """`form` is what the agent is shown."""

    form: Mapping[str, Any]
    answer: "asyncio.Future[Mapping[str, Any]]" = field(default_factory=_new_answer)


class AskingCall:
    """`can_ask`: the client of the agent that made the call takes questions."""

    def __init__(self, server: str, tool: str, *, can_ask: bool, tell: Tell) -> None:
        self.server, self.tool, self.can_ask = server, tool, can_ask
        self.changed = asyncio.Event()
        """Set with each question."""
        self.is_paused = False  # a question waits
        self._questions: dict[str, Question] = {}
        self._asked, self._tell = 0, tell
        self._timeout: asyncio.Timeout | None = None
        self._remaining = 0.0  # of the call, while a question waits

    @property
    def waiting(self) -> Mapping[str, Question]:
        """The questions without an answer, by a name within this call."""
        return {name: one for name, one in self._questions.items() if not one.answer.done()}

    @contextlib.asynccontextmanager
    async def time_limit(self, seconds: float) -> AsyncIterator[None]:
        """The call is made inside. Questions that wait at the end are cancelled. Raises
        TimeoutError."""
        try:
            async with asyncio.timeout(seconds) as self._timeout:
                yield
        finally:
            self._timeout = None
            for question in self.waiting.values():
                question.answer.set_result(CANCEL)

    def count(self) -> None:
        """One request of the server. Raises QuestionRefused after the last one that it has."""
        self._asked += 1
        if self._asked > QUESTIONS:
            raise QuestionRefused(f"this call has asked {QUESTIONS} times")

    async def ask(self, message: Any, schema: Any, name: str = "") -> Mapping[str, Any]:
        """The answer of the agent, who is shown the server's `name` of the question if it is one.
        Raises QuestionRefused, InvalidForm."""
        self.count()
        if not self.can_ask or self._timeout is None:
            raise QuestionRefused("the client of this call takes no questions")
        form = make_form(self.server, message, schema)
        question, started = Question(form), time.monotonic()
        if name in self._questions or not _NAME.fullmatch(name):
            name = f"question-{self._asked}"
        self._questions[name] = question
        if len(self._questions) == 1:
            self._pause(self._timeout)
        self.changed.set()
        answer: Mapping[str, Any] = {"action": "withdrawn"}  # by the server
        try:
            answer = await question.answer
            return answer
        finally:
            del self._questions[name]
            if self._timeout is not None and not self._questions:
                self._resume(self._timeout)
            self._tell(
                {
                    "server": self.server,
                    "tool": self.tool,
                    "question": digest(canonical_json(form)),
                    "answer": digest(canonical_json(answer)) if "content" in answer else "",
                    "outcome": answer["action"],
                    "ms": round((time.monotonic() - started) * 1000, 1),
                }
            )

    def _pause(self, timeout: asyncio.Timeout) -> None:
        now, end = asyncio.get_running_loop().time(), timeout.when()
        if end is None or timeout.expired():
            return
        self.is_paused = True
        self._remaining = max(end - now, 0.0)
        timeout.reschedule(now + ASK_SECONDS)

    def _resume(self, timeout: asyncio.Timeout) -> None:
        if not timeout.expired():
            self.is_paused = False
            timeout.reschedule(asyncio.get_running_loop().time() + self._remaining)
