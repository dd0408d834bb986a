"""One session while session-host runs: the agent's messages in, ours out, each with its effect in
one commit.
"""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

import structlog

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.context import CallContext
from agentbox.contracts.sessions import SessionItem, SessionItemKind, SessionState
from agentbox.core import clock
from agentbox.core.background.tasks import log_failures
from agentbox.core.slot_errors import (
    AcpTimeout,
    AdapterError,
    AgentEnded,
)
from agentbox.sessions import ending
from agentbox.sessions.agent_messages import AgentMessages
from agentbox.sessions.agent_program import AgentProgram
from agentbox.sessions.client_methods import ClientMethods
from agentbox.sessions.environment import Environment, SessionAgent
from agentbox.sessions.lines import encode
from agentbox.sessions.paths import PathMap
from agentbox.sessions.permissions import Permissions
from agentbox.sessions.store import Changes
from agentbox.sessions.stored import StoredCall, StoredSession

WORK: Final = "work"  # the branch, below the directory of a sandbox
_COMPARE_SECONDS: Final = 5.0  # of a branch, at the end of a turn
_ACTIVITIES: Final = 20  # kept for an error of time
_log = structlog.get_logger()


class LiveSession:
    """`stored` is changed under `lock` only, and committed before the lock is released."""

    def __init__(self, environment: Environment, stored: StoredSession) -> None:
        self.environment, self.stored = environment, stored
        self.lock = asyncio.Lock()
        self.opening = asyncio.Lock()  # while its agent starts, or is suspended
        self.program: AgentProgram | None = None
        self.permissions = Permissions(self)
        self.activities: list[str] = []
        self.calls: dict[int, StoredCall] = {}
        self.requests: dict[str, Mapping[str, Any]] = {}
        self.ending = ""  # why we end the program
        self.head = stored.head  # cursor of the newest item that is committed
        self.ended_turn = stored.turn - (stored.state == "busy")  # the newest, committed
        self.readers = 0  # clients that follow the stream
        self.client_methods = ClientMethods(self)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._messages = AgentMessages(self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    @property
    def agent(self) -> SessionAgent:
        """Its table in [agents]. Raises AgentEnded if that is no longer there."""
        found = self.environment.config().agents.get(self.stored.agent)
        if found is None:
            raise AgentEnded(
                f"cannot use session {self.stored.session_id}: "
                f"[agents.{self.stored.agent}] is no longer in the manifest",
                id=self.stored.session_id,
                stderr="",
            )
        return found

    @property
    def paths(self) -> PathMap:
        """Between its branch and `/workspace`."""
        return PathMap(str(self.environment.config().branches / self.stored.sandbox_id / WORK))

    @property
    def has_client(self) -> bool:
        """Whether somebody could answer a question."""
        return self.readers > 0 or self.environment.editors.have_open(self.stored.session_id)

    def as_caller(self) -> AbstractContextManager[CallContext]:
        """Calls act for whom it belongs to."""
        owner = self.stored.principal
        return context.as_caller(CallContext(principal=owner, session_id=self.stored.session_id))

    def make_program(self) -> AgentProgram:
        """The program of this generation, not yet started or attached."""
        max_line = self.environment.config().acp.max_message
        self.program = AgentProgram(
            self.environment.host,
            self.environment.store,
            self.stored,
            max_line,
            self._messages.take,
            partial(ending.on_end, self),
            partial(ending.refuse, self),
        )
        return self.program

    async def recover(self) -> None:
        """Loads what is under way, from the store."""
        store, session_id = self.environment.store, self.stored.session_id
        self.calls = await store.calls(session_id)
        self.requests = {
            json.dumps(message["id"]): message for message in await store.requests(session_id)
        }

    def answer_waiting_requests(self) -> None:
        """Again, after session-host was killed: each is answered once."""
        for message in list(self.requests.values()):
            if message["method"] != "session/request_permission":
                self.spawn(self.answer(message), "answer")

    async def wait(self) -> None:
        """Until something has changed."""
        await self._changed.wait()

    def publish(self) -> None:
        """Wakes those who wait, after a commit."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        self.environment.editors.wake()
        if self.program is not None:
            self.program.wake()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """A task of this session."""
        task = asyncio.create_task(work, name=f"{name} {self.stored.session_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(log_failures(name))
        return task

    async def close(self) -> None:
        """Ends what runs here; the agent goes on."""
        if self.program is not None:
            await self.program.detach()
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def commit(self, changes: Changes) -> None:
        """With the row of the session; the caller holds the lock."""
        changes.save(self.stored)
        head, ended = self.stored.head, self.stored.turn - (self.stored.state == "busy")
        await self.environment.store.commit(changes)
        self.head, self.ended_turn = head, ended
        self.publish()

    def append(self, changes: Changes, kind: SessionItemKind, data: Mapping[str, Any]) -> int:
        """One item of the stream; returns its cursor."""
        self.stored.head += 1
        item = SessionItem(
            cursor=self.stored.head,
            ts=clock.now(),
            turn=self.stored.turn,
            kind=kind,
            data=dict(data),
        )
        changes.append(item, self.stored)
        return self.stored.head

    def set_state(self, changes: Changes, state: SessionState, reason: str = "") -> None:
        """And tells it."""
        self.stored.state, self.stored.reason = state, reason
        self.append(changes, "state", {"state": state, "reason": reason})

    def notice(self, changes: Changes, text: str) -> None:
        """Words of the box, in the stream and to editors."""
        self.append(changes, "notice", {"text": text})
        self.environment.editors.notice(changes, self.stored, text)

    def send_call(
        self, changes: Changes, method: str, params: Mapping[str, Any], *, turn: int = 0
    ) -> "asyncio.Future[Any]":
        """A request to the agent. The future has its result; AdapterError if it fails."""
        self.stored.calls = n = self.stored.calls + 1
        call = StoredCall(session_id=self.stored.session_id, n=n, method=method, turn=turn)
        self.calls[n] = call
        changes.call(call)
        message = {"jsonrpc": "2.0", "id": n, "method": method, "params": params}
        changes.send(self.stored.session_id, encode(message))
        future = self._answers[n] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieve)
        self.record(f"> {method}")
        return future

    async def call(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        """The result. Raises AcpTimeout, AcpInvalid, AgentEnded, and AcpInvalid for an error."""
        async with self.lock:
            changes = Changes()
            future = self.send_call(changes, method, params)
            await self.commit(changes)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(future)
        except TimeoutError as error:
            raise AcpTimeout(
                f"cannot use session {self.stored.session_id}: the agent did not answer {method} "
                f"within {seconds:g} s",
                hint="see its last activities, and raise the bound in [acp] if it needs longer",
                id=self.stored.session_id,
                activities=list(self.activities),
            ) from error

    def notify(self, changes: Changes, method: str, params: Mapping[str, Any]) -> None:
        """A notification to the agent."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        changes.send(self.stored.session_id, encode(message))
        self.record(f"> {method}")

    def reply(self, changes: Changes, rpc_id: Any, member: str, value: Any) -> bool:
        """The answer to a request of the agent, `result` or `error`; False if it has one."""
        key = json.dumps(rpc_id)
        if self.requests.pop(key, None) is None:
            return False
        changes.add(
            "DELETE FROM requests WHERE session_id = ? AND rpc_id = ?",
            self.stored.session_id,
            key,
        )
        changes.send(
            self.stored.session_id, encode({"jsonrpc": "2.0", "id": rpc_id, member: value})
        )
        return True

    async def answer(self, message: Mapping[str, Any]) -> None:
        """Does what the agent asks for, and answers."""
        member, value = await self.client_methods.call(message)
        async with self.lock:
            changes = Changes()
            if self.reply(changes, message["id"], member, value):
                await self.commit(changes)

    def finish_turn(self, changes: Changes, stop_reason: str, error: AdapterError | None) -> None:
        """Nothing without a turn under way."""
        if self.stored.state != "busy":
            return
        if self.stored.stopping:  # the agent said why, before whatever came then
            stop_reason, error, self.stored.stopping = self.stored.stopping, None, ""
        told = {
            "stop_reason": stop_reason,
            "changed": self.stored.changed,
            **({"error": error.code} if error else {}),
        }
        self.append(changes, "stop", told)
        self.stored.state = "idle"
        self.stored.cancelled = False
        self.environment.editors.finish_turn(changes, self.stored, stop_reason, error)

    def pop_call(self, changes: Changes, call: StoredCall) -> "asyncio.Future[Any] | None":
        """A request of ours is answered now: who waits here."""
        del self.calls[call.n]
        changes.add(
            "DELETE FROM calls WHERE session_id = ? AND n = ?", self.stored.session_id, call.n
        )
        return self._answers.pop(call.n, None)

    def fail_calls(self, changes: Changes, error: AdapterError) -> None:
        """No answer will come."""
        changes.add("DELETE FROM calls WHERE session_id = ?", self.stored.session_id)
        calls, self.calls = self.calls, {}
        for n in calls:
            future = self._answers.pop(n, None)
            if future is not None and not future.done():
                future.set_exception(error)

    def record(self, activity: str) -> None:
        """The newest of what errors of time tell."""
        self.activities = [*self.activities, activity[:200]][-_ACTIVITIES:]


def _retrieve(future: "asyncio.Future[Any]") -> None:
    """Nobody need wait for it."""
    if not future.cancelled():
        future.exception()
