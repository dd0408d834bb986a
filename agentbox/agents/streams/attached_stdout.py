"""Stdout of an agent for the client that is attached to it."""

from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.streams.reader import ItemReader
from agentbox.core.records.wire import to_wire
from agentbox.core.rpc.subscriptions import ServerSubscription
from agentbox.core.slot_errors import CursorExpired


async def send_stdout(
    subscription: ServerSubscription, runner: AgentRunner, generation: int
) -> None:
    """Sends chunks of one generation from where the last client stopped, until it ends. Reports
    CursorExpired to the client if output was dropped.
    """
    record = runner.entry
    async with subscription.report_end():
        reader = ItemReader(runner.stream, record.delivered, ("stdout",))
        while True:
            items = reader.batch(await subscription.wait_for_credit())
            if any(item.kind == "state" for item in items):
                raise CursorExpired(
                    "cannot resume: output was dropped before it was read",
                    oldest=reader.position,
                )
            if chunks := [item.data for item in items if item.generation == generation]:
                await subscription.send_batch(
                    [to_wire(chunk) for chunk in chunks], sum(map(len, chunks))
                )
                record.delivered = reader.position
            elif record.generation != generation or record.pid is None:
                return
            else:
                await reader.wait_for_items()
