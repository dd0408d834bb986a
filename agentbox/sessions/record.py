"""The record of sessions: what happened in them, as events for the journal, in order and each once.
It is made of the transcript; pieces of one message are joined.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import apsw

from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.core import clock
from agentbox.core.ids import uuid7
from agentbox.sessions.store import IN_RECORD, SessionStore

JOINED_BYTES: Final = 16 << 10  # of the text of one event
JOINED_SECONDS: Final = 1.0  # after that, a piece is not waited for
_ITEMS: Final = 1024  # of the transcript, in one step
_LINES: Final = 256  # of one answer
_TYPES: Final = {
    "prompt": "session.prompted",
    "update": "session.update",
    "permission": "session.permission",
    "decision": "session.decided",
    "stop": "session.stopped",
    "state": "session.state",
    "notice": "session.notice",
}
Detail = Literal["full", "digest", "off"]


@dataclass
class _Event:
    """One event that is being made; `text` is that of the pieces joined so far."""

    session_id: str
    sandbox_id: str
    ts: str
    turn: int
    kind: str
    data: dict[str, Any]
    digest: str
    cursor: int
    text: list[str] = field(default_factory=list)
    size: int = 0

    def joins(self, other: "_Event") -> bool:
        """Whether the other one is the next piece of the same message."""
        return (
            bool(self.text)
            and bool(other.text)
            and self.session_id == other.session_id
            and self.turn == other.turn
            and self.data["sessionUpdate"] == other.data["sessionUpdate"]
            and self.data.get("messageId") == other.data.get("messageId")
            and self.size + other.size <= JOINED_BYTES
        )


class SessionRecord:
    """`detail` returns the setting `transcript` of an agent's table."""

    def __init__(self, store: SessionStore, detail: Callable[[str], Detail]) -> None:
        self._store, self._detail = store, detail
        self._waits = False  # a message that may go on
        self._seen = (-1, -1)  # newest item, and line after which there was nothing

    async def read(self, after: int) -> tuple[LifecycleRecord, ...]:
        """Lines after that number; those up to it are acknowledged."""
        seen = (await self._store.newest(), after)
        if seen == self._seen:
            return ()
        rows = await self._store.read_record(after, _LINES, self._fill)
        if not rows and not self._waits:
            self._seen = seen
        lines = ({**json.loads(row), "seq": seq} for seq, row in rows)
        return tuple(LifecycleRecord.from_wire(line) for line in lines)

    def _fill(self, db: apsw.Connection) -> None:
        mark = next(iter(db.execute("SELECT value FROM facts WHERE name = ?", (IN_RECORD,))), (0,))[
            0
        ]
        rows = list(
            db.execute(
                "SELECT items.seq, items.session_id, items.row, items.digest,"
                " json_extract(sessions.row, '$.sandbox_id'), json_extract(sessions.row, '$.agent')"
                " FROM items JOIN sessions USING (session_id)"
                " WHERE items.seq > ? ORDER BY items.seq LIMIT ?",
                (mark, _ITEMS),
            )
        )
        for seq, agent, event in _complete(rows):
            detail = self._detail(agent)
            if detail != "off" or event.kind != "update":
                line = _line(event, detail)
                db.execute("INSERT INTO record (row) VALUES (?)", (json.dumps(line),))
            mark = seq
        self._waits = bool(rows) and mark < rows[-1][0]
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (IN_RECORD, mark))


def _complete(rows: list[Any]) -> Iterator[tuple[int, str, _Event]]:
    """Events to which nothing will be added: the number of the last item, the agent, the event."""
    current: tuple[int, str, _Event] | None = None
    for seq, session_id, text, digest, sandbox_id, agent in rows:
        event = _parse(session_id, sandbox_id or "", json.loads(text), digest)
        if current is not None and current[2].joins(event):
            current[2].text += event.text
            current[2].size += event.size
            current = (seq, agent, current[2])
            continue
        if current is not None:
            yield current
        current = (seq, agent, event)
    if current is None:
        return
    age = time.time() - clock.from_wire(current[2].ts).timestamp()
    if not current[2].text or age > JOINED_SECONDS:
        yield current


def _parse(session_id: str, sandbox_id: str, wire: Mapping[str, Any], digest: str) -> _Event:
    event = _Event(
        session_id=session_id,
        sandbox_id=sandbox_id,
        ts=wire["ts"],
        turn=wire["turn"],
        kind=wire["kind"],
        data=wire["data"],
        digest=digest,
        cursor=wire["cursor"],
    )
    content = event.data.get("content")
    is_piece = event.kind == "update" and str(event.data.get("sessionUpdate")).endswith("_chunk")
    if is_piece and not digest and isinstance(content, dict) and content.get("type") == "text":
        event.text = [str(content.get("text", ""))]
        event.size = len(event.text[0].encode("utf-8", "surrogatepass"))
    return event


def _line(event: _Event, detail: Detail) -> dict[str, Any]:
    """A LifecycleRecord without its number."""
    data = event.data
    if event.text:
        data = {**data, "content": {**data["content"], "text": "".join(event.text)}}
    told: dict[str, Any] = {"turn": event.turn, "cursor": event.cursor}
    if event.kind == "update":
        told["kind"] = str(data.get("sessionUpdate"))[:64]
    if detail == "full" and not event.digest:
        told["data"] = data
    elif event.digest:
        told |= {"digest": event.digest}
    elif event.kind in ("update", "prompt"):
        body = json.dumps(data, separators=(",", ":")).encode()
        told |= {"digest": hashlib.sha256(body).hexdigest(), "size": len(body)}
    else:
        told["data"] = data
    return {
        "id": uuid7(),
        "at": event.ts,
        "type": _TYPES[event.kind],
        "agent_id": event.sandbox_id,
        "session_id": event.session_id,
        "data": told,
    }
