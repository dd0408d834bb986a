"""What of transcripts goes: over `max_transcript` the oldest bodies, and all of them a minute after
they came where `transcript` is not "full". The record that they were stays: kind, ids, size, hash.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentbox.core import clock
from agentbox.sessions.store import DROP_BODY, Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession

KEPT_SECONDS: Final = 60.0  # of a body that is not to be kept: callers and the journal take it
_PAGE: Final = 128  # items of one commit
_LEFT: Final = 7 / 8  # of the bound: so that not every item is a step
# Members of an item that say what it was, and no text.
_STAYS: Final = ("sessionUpdate", "toolCallId", "messageId", "kind", "status", "principal")
_OF_BOX: Final = ("stop", "state", "decision")  # kinds of items whose words are not the agent's


async def drop_bodies(session: "LiveSession") -> None:
    """Those that go now. Raises BackendError."""
    known = session.environment.config().agents.get(session.stored.agent)
    if known is None:
        return
    if known.acp.transcript != "full":
        await _drop(session, older_than=time.time() - KEPT_SECONDS, leave=0)
    elif session.stored.text_bytes > known.acp.max_transcript:
        await _drop(session, older_than=None, leave=int(known.acp.max_transcript * _LEFT))


async def _drop(session: "LiveSession", *, older_than: float | None, leave: int) -> None:
    stored, store = session.stored, session.environment.store
    goes_on = True
    while goes_on and stored.text_bytes > leave:
        rows = await store.rows_after(stored.session_id, stored.dropped, _PAGE)
        goes_on = len(rows) == _PAGE
        async with session.lock:
            changes = Changes()
            for cursor, row, digest, size in rows:
                wire = json.loads(row)
                is_new = older_than is not None and _time(wire) > older_than
                if is_new or stored.text_bytes <= leave:
                    goes_on = False
                    break
                stored.dropped = cursor
                if wire["kind"] not in _OF_BOX:
                    gone = _drop_body(changes, stored.session_id, wire, digest, size)
                    stored.text_bytes = max(0, stored.text_bytes - gone)
            changes.keep(stored)
            await store.commit(changes)


def _drop_body(
    changes: Changes, session_id: str, wire: dict[str, Any], digest: str, size: int | None
) -> int:
    """Returns how many characters the body had. `digest` and `size` of one that is kept apart."""
    data: Mapping[str, Any] = wire["data"]
    body = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    gone = len(body) if size is None else size
    stays = {name: data[name] for name in _STAYS if isinstance(data.get(name), str)}
    wire["data"] = {**stays, "size": gone}
    wire["digest"] = digest or hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
    wire["dropped"] = True
    changes.add(
        "UPDATE items SET row = ?, digest = '' WHERE session_id = ? AND cursor = ?",
        json.dumps(wire, separators=(",", ":")),
        session_id,
        wire["cursor"],
    )
    if digest:
        changes.add(DROP_BODY, digest, digest)
    return gone


def _time(wire: Mapping[str, Any]) -> float:
    return clock.from_wire(wire["ts"]).timestamp()
