"""The ordered lifecycle record of agent-host, each entry consumed exactly once (O15)."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from agentbox.core.records.wire import JsonObj, Record, record


@record
class LifecycleRecord(Record):
    """One lifecycle event. `id` never changes, so that the entry is in the journal once. `type` is
    agent.started, agent.restarted, agent.exited, agent.lost, policy.denied, limit.warning,
    limit.breached, sandbox.created, sandbox.exec or sandbox.ended; `at` is when agent-host stored
    it. `agent_id` is empty if a start was denied; `session_id` and `trace_id` if it belongs to no
    run.
    """

    seq: int
    id: str
    at: datetime
    type: str
    agent_id: str
    data: JsonObj
    session_id: str = ""
    trace_id: str = ""


RecordHandler = Callable[[tuple[LifecycleRecord, ...]], Awaitable[None]]
