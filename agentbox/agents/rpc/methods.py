"""RPC methods by name. Each takes the session and the params, and returns plain data."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, get_args

from agentbox.agents.admission.admit import Requester
from agentbox.agents.approvals import methods as approvals
from agentbox.agents.authorization import metering
from agentbox.agents.errors import invalid
from agentbox.agents.parameters import read_handle
from agentbox.agents.registry.presentation import detailed_info
from agentbox.agents.review import methods as review
from agentbox.agents.rpc.service import Service
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.runs.stdin import StdinClosed
from agentbox.agents.states import methods as states
from agentbox.agents.streams.attached_stdout import send_stdout
from agentbox.agents.streams.reader import ItemReader
from agentbox.contracts.orchestrator import AgentFilter, AgentSpec, Signal
from agentbox.core.linux import kernel
from agentbox.core.records.wire import from_wire
from agentbox.core.rpc.session import Method, Params, Session
from agentbox.core.rpc.subscriptions import ServerSubscription
from agentbox.core.slot_errors import InvalidTransition, SlotUnavailable

_RECORD_LIMIT = 1000
_MAX_WAIT = 60.0  # seconds of one record.read
_MAX_REQUEST_ID = 200  # characters


async def spawn(session: Session[Service], params: Params) -> Any:
    spec = AgentSpec.from_wire(params["spec"])
    stdin = None if params.get("stdin") is None else from_wire(bytes, params["stdin"])
    if stdin is not None and spec.stdin != "pipe":
        raise invalid("/stdin", "needs a spec whose stdin is a pipe")
    attached = params.get("attached") is True
    return (
        await session.service.registry.spawn(
            spec, _requester(params), stdin=stdin, attached=attached
        )
    ).to_wire()


async def run_once(session: Session[Service], params: Params) -> Any:
    spec, stdin = AgentSpec.from_wire(params["spec"]), from_wire(bytes, params["stdin"])
    timeout, max_output = (
        from_wire(float, params["timeout_s"]),
        from_wire(int, params["max_output"]),
    )
    return (
        await session.service.runs.run(spec, _requester(params), stdin, timeout, max_output)
    ).to_wire()


async def page(session: Session[Service], params: Params) -> Any:
    agent_filter = AgentFilter.from_wire(params.get("filter") or {})
    return session.service.registry.page(
        agent_filter, params.get("limit", 100), params.get("cursor")
    )


async def get(session: Session[Service], params: Params) -> Any:
    return detailed_info(
        session.service.registry.get(params["agent_id"]), session.service.host
    ).to_wire()


async def send_signal(session: Session[Service], params: Params) -> Any:
    name = params["signal"]
    if name not in get_args(Signal):
        raise invalid("/signal", f"must be one of {', '.join(get_args(Signal))}")
    session.service.registry.signal(read_handle(params), name)
    return {}


async def terminate(session: Session[Service], params: Params) -> Any:
    grace = params.get("grace_s")
    if grace is not None and not 0 <= from_wire(float, grace) <= 60:
        raise invalid("/grace_s", "must be from 0 to 60")
    ending = asyncio.create_task(session.service.registry.terminate(read_handle(params), grace))
    return (await asyncio.shield(ending)).to_wire()


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


async def attach(session: Session[Service], params: Params) -> Any:
    handle = read_handle(params)
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


async def read_record(session: Session[Service], params: Params) -> Any:
    """Lines after `after`, which acknowledges all up to it; waits up to `wait_s` for the first."""
    store, host, after = (
        session.service.host.store,
        session.service.host,
        from_wire(int, params["after"]),
    )
    await store.discard_record(after)
    try:
        async with asyncio.timeout(min(_MAX_WAIT, from_wire(float, params.get("wait_s", 0)))):
            while True:
                change = asyncio.ensure_future(host.wait_for_record())
                await asyncio.sleep(0)  # subscribe before the check, so that no record is missed
                try:
                    if rows := await store.read_record(after, _RECORD_LIMIT):
                        return {"items": rows}
                    await change
                finally:
                    change.cancel()
    except TimeoutError:
        return {"items": []}


async def watch_authorizations(session: Session[Service], params: Params) -> Any:
    """A subscription: the authorization of every agent, then each change
    (`AuthorizationRegistry.subscribe`)."""
    session.is_watch_only = True
    subscription = ServerSubscription(params["subscription"], params["credit"], session.send)
    session.run_subscription(
        subscription, subscription.send_items(session.service.host.authorizations.subscribe())
    )
    return {}


async def use_grant(session: Session[Service], params: Params) -> Any:
    """Count one use of the rights that allow a request (`metering.consume`)."""
    await metering.consume(session.service.host, params)
    return {}


async def revoke_grant(session: Session[Service], params: Params) -> Any:
    """Revoke a grant; return the agent."""
    registry = session.service.registry
    entry = registry.get(params["agent_id"])
    revocation = registry.revoker.revoke(
        entry, from_wire(str, params["grant_id"]), str(params.get("principal", ""))
    )
    await asyncio.shield(asyncio.ensure_future(revocation))
    return detailed_info(entry, session.service.host).to_wire()


async def report_denial(session: Session[Service], params: Params) -> Any:
    """Count denials by another process of the box."""
    count = from_wire(int, params.get("count", 1))
    if count < 1:
        raise invalid("/count", "must be at least 1")
    text = {name: from_wire(str, params[name]) for name in ("agent_id", "layer", "rule")}
    session.service.host.denials.on_denied(
        **text, count=count, detail=from_wire(str, params.get("detail", ""))
    )
    return {}


async def read_denials(session: Session[Service], params: Params) -> Any:
    """All counts once the revision differs from `after`, or after `wait_s`."""
    ledger, after = session.service.host.denials, from_wire(int, params["after"])
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(min(_MAX_WAIT, from_wire(float, params.get("wait_s", 0)))):
            while ledger.revision == after:
                await ledger.wait_for_change()
    return ledger.totals().to_wire()


async def read_canaries(session: Session[Service], params: Params) -> Any:
    """The canary report once its revision differs from `after`, or after `wait_s`."""
    runner, after = session.service.canaries, from_wire(int, params["after"])
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(min(_MAX_WAIT, from_wire(float, params.get("wait_s", 0)))):
            while runner.report.at is None or runner.report.revision == after:
                await runner.wait_for_report()
    return runner.report.to_wire()


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


METHODS: Mapping[str, Method[Service]] = {
    "agent.spawn": spawn,
    "agent.list": page,
    "agent.get": get,
    "agent.signal": send_signal,
    "agent.terminate": terminate,
    "agent.run_once": run_once,
    "agent.stream": stream,
    "agent.attach": attach,
    "agent.stdin": stdin,
    "record.read": read_record,
    "grant.use": use_grant,
    "grant.revoke": revoke_grant,
    "authorization.watch": watch_authorizations,
    "agent.denied": report_denial,
    "denials.read": read_denials,
    "canaries.read": read_canaries,
    **review.METHODS,
    **approvals.METHODS,
    **states.METHODS,
    "ping": ping,
    "shutdown": shutdown,
}


def _requester(params: Params) -> Requester:
    request_id = from_wire(str, params["request_id"])
    if not 0 < len(request_id) <= _MAX_REQUEST_ID:
        raise invalid("/request_id", f"must have 1 to {_MAX_REQUEST_ID} characters")
    return Requester(
        principal=params.get("principal", ""),
        request_id=request_id,
        admin=params.get("admin") is True,
        submitter=from_wire(str, params.get("submitter", "")),
        submitter_admin=params.get("submitter_admin") is True,
        state_id=from_wire(str, params.get("state_id", "")),
        session_id=from_wire(str, params.get("session_id", "")),
        trace_id=from_wire(str, params.get("trace_id", "")),
    )


def _not_attached(reason: str) -> InvalidTransition:
    members: dict[str, Any] = {"id": "", "from": "closed", "to": "written", "blockers": []}
    return InvalidTransition(f"cannot write to stdin: {reason}", **members)
