"""The contract suite of the events slot: V1 to V13 and V16, for an implementation with a local
journal.
"""

from typing import Any

from agentbox.contracts.events import Events, NewEvent
from agentbox_testkit.contracts.common import CommonContract
from agentbox_testkit.contracts.events_append import AppendClauses
from agentbox_testkit.contracts.events_common import new_event
from agentbox_testkit.contracts.events_files import FileClauses
from agentbox_testkit.contracts.events_read import ReadClauses
from agentbox_testkit.contracts.events_received import ReceivedClauses, foreign_journal
from agentbox_testkit.contracts.events_recovery import RecoveryClauses


class EventsContract(
    AppendClauses, ReadClauses, ReceivedClauses, FileClauses, RecoveryClauses, CommonContract
):
    """The complete suite."""

    contract = Events
    calls = {  # noqa: RUF012 - the base declares it ClassVar
        "append": (([NewEvent(type="a", data={})],), {}),
        "read": ((), {}),
        "subscribe": ((), {}),
        "head": ((), {}),
        "verify": ((), {}),
        "receive": (("one", foreign_journal(1)), {}),
        "delivery": ((), {}),
    }

    async def use(self, adapter: Any) -> list[Any]:
        events = await adapter.append([new_event(), new_event(subject="s")])
        received = await adapter.receive("one", foreign_journal(2))
        return [
            *events,
            received,
            await adapter.read(),
            await adapter.verify(),
            await adapter.delivery(),
        ]
