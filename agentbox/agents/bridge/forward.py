"""The bridge as a relay: operations go to the agents of another box, errors come back with the same
type."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agentbox.adapters.remote.agents import HttpOrchestrator
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.agents.rpc.derived import derive_methods
from agentbox.contracts.agent_host.rpc import rpc_method
from agentbox.contracts.operations.agents import AGENTS
from agentbox.contracts.orchestrator import CONTRACT_VERSION, Attachment
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.records.wire import from_wire, to_wire
from agentbox.core.rpc import messages, pipes
from agentbox.core.rpc.session import Method, Params, Session
from agentbox.core.rpc.subscriptions import ServerSubscription
from agentbox.core.slot_errors import NotFound, SlotUnavailable
from agentbox.manifest.slot_options import HttpOptions

_ATTACH = rpc_method(AGENTS, "attach")
_OPEN_SECONDS = 8.0  # opening a slot is limited to 10


class Forwarder:
    """Serves a session from the agents of another box."""

    contract_version = CONTRACT_VERSION

    def __init__(self, agents: HttpOrchestrator, stop: asyncio.Event) -> None:
        self.agents, self.stop = agents, stop

    def handshake(self, _session: Session[Any], _params: Params) -> dict[str, Any]:
        """The bounds of the caller's box do not apply to the remote host and are ignored."""
        return {"capabilities": sorted(self.agents.capabilities)}

    async def handle(self, session: Session[Any], method: str, params: Params) -> Any:
        """Raises NotFound for an unknown method."""
        handler = _METHODS.get(method)
        if handler is None:
            raise NotFound(f"unknown method {method}", resource="method", id=method)
        return await handler(session, params)


async def serve(
    endpoint: str, token: str, ca_file: str, fds: tuple[int, int], paths: Paths
) -> None:
    """Return once the peer has disconnected or requested shutdown. Remote agents keep running.
    Raises AdapterError if the host does not answer."""
    cfg = SlotConfig(
        slot="orchestrator",
        use="external-stdio",
        required=True,
        paths=paths,
        options=HttpOptions(endpoint=endpoint, ca_file=ca_file),
        secrets={"token": token},
    )
    agents, stop = HttpOrchestrator(cfg, Deps(metrics=Metrics())), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await agents.open(Deadline.after(_OPEN_SECONDS))
    try:
        reader, _ = await pipes.open_reader(fds[0], messages.LINE_LIMIT)
        session = Session(Forwarder(agents, stop), reader, await pipes.open_writer(fds[1]))
        tasks = asyncio.create_task(session.serve()), asyncio.create_task(stop.wait())
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        await agents.close()


async def _stream(session: Session[Forwarder], params: Params) -> Any:
    agents, since = session.service.agents, from_wire(int, params.get("since", 0))
    items = agents.stream(params["agent_id"], since=since, follow=bool(params.get("follow", True)))
    subscription = ServerSubscription(params["subscription"], params["credit"], session.send)

    async def sized_items() -> AsyncIterator[tuple[Any, int]]:
        async with contextlib.aclosing(items) as stream:  # type: ignore[type-var]
            async for item in stream:
                yield item.to_wire(), len(item.data)

    session.run_subscription(subscription, subscription.send_items(sized_items()))
    return {}


async def _attach(session: Session[Forwarder], params: Params) -> Any:
    attachment = await session.service.agents.attach(**_ATTACH.decode(params))
    subscription = ServerSubscription(params["subscription"], params["credit"], session.send)
    session.attachments[subscription.number] = attachment

    async def sized_chunks() -> AsyncIterator[tuple[Any, int]]:
        try:
            async for chunk in attachment:
                yield to_wire(chunk), len(chunk)
        finally:
            await attachment.aclose()

    session.run_subscription(subscription, subscription.send_items(sized_chunks()))
    return {}


async def _stdin(session: Session[Forwarder], params: Params) -> Any:
    attachment: Attachment | None = session.attachments.get(params["subscription"])
    if attachment is None:
        raise NotFound("cannot write to stdin: no client is attached", resource="attachment", id="")
    await (
        attachment.close_stdin()
        if params.get("eof")
        else attachment.send(from_wire(bytes, params["data"]))
    )
    return {}


async def _ping(session: Session[Forwarder], _params: Params) -> Any:
    health = await session.service.agents.health()
    if health.state == "down":
        raise SlotUnavailable(health.detail, slot="orchestrator", impl="external-stdio", since=None)
    return {}


async def _shutdown(session: Session[Forwarder], _params: Params) -> Any:
    session.service.stop.set()
    return {}


_METHODS: Mapping[str, Method[Forwarder]] = {
    **derive_methods(AGENTS, lambda service: service.agents),
    "agent.stream": _stream,
    "agent.attach": _attach,
    "agent.stdin": _stdin,
    "ping": _ping,
    "shutdown": _shutdown,
}
