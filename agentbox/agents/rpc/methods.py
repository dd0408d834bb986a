"""RPC methods by name. Most are derived from the operations of the orchestrator contract and of
`AgentHost`; here are those with a subscription, the input of an attached agent, and those about the
program."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agentbox.agents.errors import invalid
from agentbox.agents.rpc.derived import derive_methods
from agentbox.agents.rpc.service import Service
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.runs.stdin import StdinClosed
from agentbox.agents.streams.attached_stdout import send_stdout
from agentbox.agents.streams.reader import ItemReader
from agentbox.contracts.agent_host.rpc import rpc_method
from agentbox.contracts.operations.agent_host import AGENT_HOST
from agentbox.contracts.operations.agents import AGENTS
from agentbox.core.linux import kernel
from agentbox.core.records.wire import from_wire
from agentbox.core.rpc.session import Method, Params, Session
from agentbox.core.rpc.subscriptions import ServerSubscription
from agentbox.core.slot_errors import InvalidTransition, SlotUnavailable

_ATTACH = rpc_method(AGENTS, "attach")
_STREAM_EXEC = rpc_method(AGENT_HOST, "stream_exec")


async def stream(session: Session[Service], params: Params) -> Any:
    registry = session.service.registry
    entry = registry.get(params["agent_id"])
    since = params.get("since", 0)
    if not isinstance(since, int) or since < 0:
        raise invalid("/since", "must be a cursor")
    reader = ItemReader(registry.streams[entry.agent_id], since)
    subscription = ServerSubscription(params["subscription"], params["credit"], session.send)
    follow = bool(params.get("follow", True))
    if params.get("attached") is True:
        attached = registry.attached_readers(entry).attach(since)
        session.run_subscription(
            subscription,
            subscription.send_stream(reader, follow=follow, attached=attached),
            attached.detach,
        )
    else:
        session.run_subscription(subscription, subscription.send_stream(reader, follow=follow))
    return {}


async def stream_exec(session: Session[Service], params: Params) -> Any:
    arguments = _STREAM_EXEC.decode(params)
    run = session.service.sandboxes.find(arguments["sandbox_id"], arguments["n"])
    reader = ItemReader(run.stream, arguments["since"])
    subscription = ServerSubscription(params["subscription"], params["credit"], session.send)
    follow: bool = arguments["follow"]
    if session.program and follow and run.readers is not None:
        attached = run.readers.attach(arguments["since"])
        session.run_subscription(
            subscription,
            subscription.send_stream(reader, follow=follow, attached=attached),
            attached.detach,
        )
    else:
        session.run_subscription(subscription, subscription.send_stream(reader, follow=follow))
    return {}


async def attach(session: Session[Service], params: Params) -> Any:
    (handle,) = _ATTACH.decode(params).values()
    runner = session.service.registry.attachable_runner(handle)
    subscription = ServerSubscription(params["subscription"], params["credit"], session.send)
    runner.attached = True
    session.attachments[subscription.number] = runner
    session.run_subscription(
        subscription, send_stdout(subscription, runner, handle.generation), runner.detach
    )
    return {}


async def stdin(session: Session[Service], params: Params) -> Any:
    runner: AgentRunner | None = session.attachments.get(params["subscription"])
    if runner is None or runner.stdin is None:
        raise _not_attached("no client is attached")
    if params.get("eof"):
        runner.stdin.close()
        return {}
    try:
        await runner.stdin.write(from_wire(bytes, params["data"]))
    except StdinClosed as error:
        raise _not_attached("the agent has closed its stdin") from error
    return {}


async def watch_authorizations(session: Session[Service], params: Params) -> Any:
    """A subscription: the authorization of every agent, then each change
    (`AuthorizationRegistry.subscribe`)."""
    session.is_watch_only = True
    subscription = ServerSubscription(params["subscription"], params["credit"], session.send)
    session.run_subscription(
        subscription, subscription.send_items(session.service.host.authorizations.subscribe())
    )
    return {}


async def watch_approvals(session: Session[Service], params: Params) -> Any:
    """A subscription without items: while it is open, an approver is connected."""
    approvals = session.service.host.approvals
    subscription = ServerSubscription(params["subscription"], params["credit"], session.send)

    def on_end() -> None:
        approvals.approver_count -= 1

    approvals.approver_count += 1
    session.run_subscription(subscription, subscription.send_items(_no_items()), on_end)
    return {}


async def ping(session: Session[Service], _params: Params) -> Any:
    """Read the store; `degraded` describes unreadable rows. Raises SlotUnavailable if the file is
    missing."""
    store = session.service.host.store
    if not store.is_present():
        raise SlotUnavailable(
            "cannot use orchestrator: agents.db no longer exists",
            slot="orchestrator",
            impl="local-process",
            since=None,
        )
    await store.fact("mark")
    return {"boot_id": kernel.boot_id(), "degraded": store.damaged.adjust_state("ok", "")[1]}


async def shutdown(session: Session[Service], _params: Params) -> Any:
    """End every agent, then the program."""
    session.service.stop.set()
    return {}


HAND_WRITTEN: Mapping[str, Method[Service]] = {
    "agent.stream": stream,
    "agent.attach": attach,
    "agent.stdin": stdin,
    "approval.follow": watch_approvals,
    "sandbox.stream": stream_exec,
    "authorization.watch": watch_authorizations,
    "ping": ping,
    "shutdown": shutdown,
}
METHODS: Mapping[str, Method[Service]] = {
    **derive_methods(AGENTS, lambda service: service.agents),
    **derive_methods(AGENT_HOST, lambda service: service.services),
    **HAND_WRITTEN,
}


async def _no_items() -> AsyncIterator[tuple[Any, int]]:
    await asyncio.get_running_loop().create_future()
    yield None, 0  # makes it an iterator


def _not_attached(reason: str) -> InvalidTransition:
    members: dict[str, Any] = {"id": "", "from": "closed", "to": "written", "blockers": []}
    return InvalidTransition(f"cannot write to stdin: {reason}", **members)
