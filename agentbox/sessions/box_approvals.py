"""Approvals of the box in the dialogue of an editor: what `approval_required` names waits there for
a person whose token may decide (`approvals:write`). It is the box that asks: ids of its questions
begin with a prefix that no agent's can have, and an answer is for one use.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

import structlog

from agentbox.contracts.approvals import Approval
from agentbox.core.slot_errors import AdapterError
from agentbox.sessions.editor_connection import EditorConnection
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.manager import SessionManager

SCOPE: Final = "approvals:write"
_BOX: Final = "agentbox:"  # before the ids of its tool calls; those of agents have another prefix
_LOOK_SECONDS: Final = 0.5
_OPTIONS: Final = (
    {"optionId": "approve", "name": "Approve once", "kind": "allow_once"},
    {"optionId": "deny", "name": "Deny", "kind": "reject_once"},
)
_log = structlog.get_logger()


def may_decide(connection: EditorConnection) -> bool:
    """Whether the token of that editor decides about approvals."""
    return bool({SCOPE, "admin"} & set(connection.stored.scopes))


class BoxApprovals:
    """While an editor that may decide has a session open, agent-host knows that somebody is there
    to answer."""

    def __init__(self, manager: "SessionManager") -> None:
        self._manager = manager
        self._presence: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Without end."""
        try:
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                approvers = [
                    one
                    for one in self._manager.editors.connections.values()
                    if one.stored.sessions and one.left_at is None and may_decide(one)
                ]
                self._announce(is_there=bool(approvers))
                if approvers:
                    with suppress(AdapterError):  # agent-host starts again
                        await self._look(approvers)
        finally:
            self._announce(is_there=False)

    def _announce(self, *, is_there: bool) -> None:
        if is_there and (self._presence is None or self._presence.done()):
            self._presence = asyncio.create_task(self._follow(), name="presence of approvers")
        elif not is_there and self._presence is not None:
            self._presence.cancel()
            self._presence = None

    async def _follow(self) -> None:
        with suppress(AdapterError):
            async for _ in self._manager.host.watch_approvals():
                continue

    async def _look(self, approvers: list[EditorConnection]) -> None:
        approvals = await self._manager.host.list_approvals()
        waiting = {one.id: one for one in approvals if one.state == "waiting"}
        sessions = {
            one.sandbox_id: one.session_id for one in self._manager.stored_sessions() if one.is_open
        }
        for connection in approvers:
            async with connection.lock:
                changes = Changes()
                self._withdraw(connection, changes, waiting)
                asked = {row.get("approval") for row in connection.own.values()}
                for approval in waiting.values():
                    session_id = sessions.get(approval.agent_id)
                    if session_id in connection.stored.sessions and approval.id not in asked:
                        _ask(connection, changes, str(session_id), approval)
                await self._manager.store.commit(changes)
                self._manager.editors.wake()

    @staticmethod
    def _withdraw(connection: EditorConnection, changes: Changes, waiting: Iterable[str]) -> None:
        """Those that were decided elsewhere, or are over."""
        for key, row in list(connection.own.items()):
            if row["own"] == "approval" and row["approval"] not in waiting:
                connection.withdraw(changes, key)


def _ask(
    connection: EditorConnection, changes: Changes, session_id: str, approval: Approval
) -> None:
    text = (
        f"The box asks, not the agent: {approval.name} wants {approval.kind} {approval.value}.\n"
        f"Parameters: {approval.parameters}\n"
        f"Its words: {approval.words}\n"
        f"The answer is for one use ({approval.id}, until {approval.expires_at:%H:%M:%S} UTC)."
    )
    params = {
        "sessionId": session_id,
        "toolCall": {
            "toolCallId": f"{_BOX}{approval.id}",
            "title": f"agentbox: approve {approval.kind} {approval.value}?",
            "kind": "other",
            "status": "pending",
            "content": [{"type": "content", "content": {"type": "text", "text": text}}],
        },
        "options": list(_OPTIONS),
    }
    row = {"own": "approval", "session": session_id, "approval": approval.id}
    connection.ask(changes, row, "session/request_permission", params)


async def decide(
    manager: "SessionManager", connection: EditorConnection, row: Mapping[str, Any], option: str
) -> None:
    """The answer of an editor; anything but an approval denies."""
    verdict: Literal["approve", "deny"] = "deny"
    if option == "approve" and may_decide(connection):
        verdict = "approve"
    try:
        await manager.host.decide_approval(
            row["approval"],
            verdict=verdict,
            reason="answered in an editor",
            by=connection.stored.principal,
        )
    except AdapterError as error:
        _log.info("approval not decided", reason=error.message)
