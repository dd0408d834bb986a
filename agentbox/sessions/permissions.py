"""Permissions that agents ask for. They are courtesy of the agent, and no boundary: whatever the
answer, the kernel confines it. A client answers, or `[agents.<name>.acp] permissions`.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentbox.contracts.sessions import PermissionId
from agentbox.core import clock
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import NotFound, ValidationError
from agentbox.core.visible_text import escape_invisible
from agentbox.sessions import protocol
from agentbox.sessions.store import Changes
from agentbox.sessions.stored import StoredSession

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession

MAX_WAITING: Final = 8  # that wait for an answer, per session
MAX_AN_HOUR: Final = 60  # asked of people, per session
_MAX_TITLE, _MAX_OPTIONS, _MAX_ID, _MAX_KIND = 300, 16, 256, 64
_PUBLIC: Final = ("permission_id", "tool_call_id", "title", "options", "asked_at")
_CANCELLED: Final = {"outcome": {"outcome": "cancelled"}}


class Permissions:
    """Those of one session; the caller holds its lock, and commits."""

    def __init__(self, session: "LiveSession") -> None:
        self._session = session

    @property
    def _stored(self) -> StoredSession:
        return self._session.stored

    def ask(self, changes: Changes, rpc_id: Any, params: Mapping[str, Any]) -> None:
        """A request of the agent: answered at once, or it waits for a client."""
        options = params["options"][:_MAX_OPTIONS]
        if any(len(one["optionId"]) > _MAX_ID for one in options):
            raise protocol.InvalidMessage(f"an optionId is longer than {_MAX_ID} characters")
        if self._session.stored.cancelled:
            self._session.reply(changes, rpc_id, "result", _CANCELLED)
            return
        call = params["toolCall"]
        kind = str(call.get("kind") or "other")[:_MAX_KIND]
        wanted = self._automatic(kind)
        row = {
            "permission_id": uuid7(),
            "rpc_id": rpc_id,
            "tool_call_id": str(call["toolCallId"])[:256],
            "tool_kind": kind,
            "title": escape_invisible(str(call.get("title") or ""))[:_MAX_TITLE],
            "options": [
                {
                    "option_id": str(one["optionId"]),
                    "name": escape_invisible(str(one["name"]))[:_MAX_TITLE],
                    "kind": str(one["kind"]),
                }
                for one in options
            ],
            "asked_at": clock.to_wire(clock.now()),
        }
        self._session.append(changes, "permission", _public(row))
        if wanted:
            self._answer(changes, row, _first(row["options"], wanted), "agentbox.toml")
            return
        self._stored.asked = [*self._stored.asked, time.time()]
        self._stored.permissions = [*self._stored.permissions, row]
        self._session.environment.editors.ask(changes, self._stored, row, params)

    def decide(
        self, changes: Changes, permission_id: PermissionId, option_id: str, by: str
    ) -> None:
        """Raises NotFound for one that no longer waits, ValidationError for an unknown option."""
        row = next(
            (r for r in self._stored.permissions if r["permission_id"] == permission_id), None
        )
        if row is None:
            raise NotFound(
                f"cannot find permission {permission_id}: it is answered, or was never asked",
                resource="permission",
                id=permission_id,
            )
        known = [one for one in row["options"] if one["option_id"] == option_id]
        if option_id and not known:
            options = ", ".join(one["option_id"] for one in row["options"])
            raise ValidationError(
                f"cannot answer with {option_id!r}: the options are {options}",
                errors=[{"pointer": "/option_id", "detail": f"must be one of {options}"}],
            )
        if known and known[0]["kind"] == "allow_always":
            kinds = {*self._stored.allowed_kinds, row["tool_kind"]}
            self._stored.allowed_kinds = sorted(kinds)
        self._forget(row)
        self._answer(changes, row, known[0] if known else None, by)

    def cancel_all(self, changes: Changes) -> None:
        """The turn was cancelled: the protocol wants each answered so."""
        for row in list(self._stored.permissions):
            self._forget(row)
            self._answer(changes, row, None, "cancel")

    def drop_all(self, changes: Changes) -> None:
        """The agent has ended: nobody waits for the answers."""
        for row in self._stored.permissions:
            self._session.environment.editors.withdraw(changes, self._stored, row)
        self._stored.permissions = []

    def _forget(self, row: Mapping[str, Any]) -> None:
        self._stored.permissions = [one for one in self._stored.permissions if one is not row]

    def _answer(
        self, changes: Changes, row: Mapping[str, Any], option: Mapping[str, Any] | None, by: str
    ) -> None:
        outcome = (
            _CANCELLED
            if option is None
            else {"outcome": {"outcome": "selected", "optionId": option["option_id"]}}
        )
        self._session.reply(changes, row["rpc_id"], "result", outcome)
        told = {
            "permission_id": row["permission_id"],
            "option_id": "" if option is None else option["option_id"],
            "by": by,
        }
        self._session.append(changes, "decision", told)
        self._session.environment.editors.withdraw(changes, self._stored, row)

    def _automatic(self, kind: str) -> str:
        """How the answer begins, "" if a client is asked."""
        if kind in self._stored.allowed_kinds:
            return "allow"
        since = time.time() - 3600
        self._stored.asked = [at for at in self._stored.asked if at > since]
        if len(self._stored.permissions) >= MAX_WAITING or len(self._stored.asked) >= MAX_AN_HOUR:
            return "reject"
        agent = self._session.environment.config().agents.get(self._stored.agent)
        setting = "deny" if agent is None else agent.acp.permissions
        if setting == "ask" and self._session.has_client:
            return ""
        return "allow" if setting == "allow" else "reject"


def _first(options: list[dict[str, Any]], kind: str) -> dict[str, Any] | None:
    """The first option of that kind: once before always."""
    found = [one for one in options if one["kind"].startswith(kind)]
    return min(found, key=lambda one: not one["kind"].endswith("_once"), default=None)


def _public(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _PUBLIC}
