"""The methods of the connection (O18), by name. Each takes the session and the params, and answers plain data."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from agentbox.agents.admission.admitting import Asker
from agentbox.agents.approvals import methods as approvals
from agentbox.agents.authorization import metering
from agentbox.agents.registry.presentation import shown
from agentbox.agents.review import methods as review
from agentbox.agents.runs.life import Life
from agentbox.agents.runs.stdin import StdinClosed
from agentbox.agents.states import methods as states
from agentbox.agents.streams.reader import Reader
from agentbox.contracts.orchestrator import AgentFilter, AgentHandle, AgentSpec, Signal
from agentbox.core.linux import kernel
from agentbox.core.records.wire import from_wire
from agentbox.core.rpc.flows import Flow
from agentbox.core.slot_errors import InvalidTransition, SlotUnavailable, ValidationError

if TYPE_CHECKING:
    from agentbox.agents.rpc.service import Service
    from agentbox.core.rpc.session import Session

Params = Mapping[str, Any]
_RECORD_LIMIT = 1000
_LONGEST_WAIT = 60.0  # seconds of one record.read
_REQUEST_ID = 200  # characters


async def spawn(session: "Session[Service]", params: Params) -> Any:
    spec = AgentSpec.from_wire(params["spec"])
    stdin = None if params.get("stdin") is None else from_wire(bytes, params["stdin"])
    if stdin is not None and spec.stdin != "pipe":
        raise _invalid("/stdin", "needs a spec whose stdin is a pipe")
    attached = params.get("attached") is True
    return (await session.service.table.spawn(spec, _asker(params), stdin=stdin, attached=attached)).to_wire()


async def run_once(session: "Session[Service]", params: Params) -> Any:
    spec, stdin = AgentSpec.from_wire(params["spec"]), from_wire(bytes, params["stdin"])
    timeout, most = from_wire(float, params["timeout_s"]), from_wire(int, params["max_output"])
    return (await session.service.runs.run(spec, _asker(params), stdin, timeout, most)).to_wire()


async def page(session: "Session[Service]", params: Params) -> Any:
    wanted = AgentFilter.from_wire(params.get("filter") or {})
    return session.service.table.page(wanted, params.get("limit", 100), params.get("cursor"))


async def get(session: "Session[Service]", params: Params) -> Any:
    return shown(session.service.table.get(params["agent_id"]), session.service.host).to_wire()


async def send_signal(session: "Session[Service]", params: Params) -> Any:
    name = params["signal"]
    if name not in get_args(Signal):
        raise _invalid("/signal", f"must be one of {', '.join(get_args(Signal))}")
    session.service.table.signal(_handle(params), name)
    return {}


async def terminate(session: "Session[Service]", params: Params) -> Any:
    grace = params.get("grace_s")
    if grace is not None and not 0 <= from_wire(float, grace) <= 60:
        raise _invalid("/grace_s", "must be from 0 to 60")
    ending = asyncio.create_task(session.service.table.terminate(_handle(params), grace))
    return (await asyncio.shield(ending)).to_wire()


async def stream(session: "Session[Service]", params: Params) -> Any:
    table = session.service.table
    entry = table.get(params["agent_id"])
    since = params.get("since", 0)
    if not isinstance(since, int) or since < 0:
        raise _invalid("/since", "must be a cursor")
    reader = Reader(table.streams[entry.agent_id], since)
    flow = Flow(params["subscription"], params["credit"], session.send)
    follow = bool(params.get("follow", True))
    if params.get("attached") is True:
        attached = table.attached(entry).attach(since)
        session.follow(flow, flow.pass_on(reader, follow=follow, attached=attached), attached.leave)
    else:
        session.follow(flow, flow.pass_on(reader, follow=follow))
    return {}


async def attach(session: "Session[Service]", params: Params) -> Any:
    handle = _handle(params)
    life = session.service.table.attachable(handle)
    flow = Flow(params["subscription"], params["credit"], session.send)
    life.attached = True
    session.attachments[flow.number] = life
    session.follow(flow, flow.pass_stdout(life, handle.generation), life.let_go)
    return {}


async def stdin(session: "Session[Service]", params: Params) -> Any:
    life: Life | None = session.attachments.get(params["subscription"])
    if life is None or life.stdin is None:
        raise _let_go("nobody is attached here any more")
    if params.get("eof"):
        life.stdin.close()
        return {}
    try:
        await life.stdin.write(from_wire(bytes, params["data"]))
    except StdinClosed as error:
        raise _let_go("the agent does not read any more") from error
    return {}


async def record(session: "Session[Service]", params: Params) -> Any:
    """Lines beyond `after`, which says that all up to it were taken for good; waits up to `wait_s` for the first."""
    store, host, after = session.service.host.store, session.service.host, from_wire(int, params["after"])
    await store.record_taken(after)
    try:
        async with asyncio.timeout(min(_LONGEST_WAIT, from_wire(float, params.get("wait_s", 0)))):
            while True:
                grown = asyncio.ensure_future(host.record_grows())
                await asyncio.sleep(0)  # it waits before the look, so nothing slips between
                try:
                    if rows := await store.record(after, _RECORD_LIMIT):
                        return {"items": rows}
                    await grown
                finally:
                    grown.cancel()
    except TimeoutError:
        return {"items": []}


async def follow_standings(session: "Session[Service]", params: Params) -> Any:
    """A subscription: every agent's standing, then each change (`agentbox.agents.authorization.standings`)."""
    session.only_follows = True
    flow = Flow(params["subscription"], params["credit"], session.send)
    session.follow(flow, flow.pass_items(session.service.host.standings.follow()))
    return {}


async def use_grant(session: "Session[Service]", params: Params) -> Any:
    """Takes one use of what allows a request (`agentbox.agents.authorization.metering`)."""
    await metering.use(session.service.host, params)
    return {}


async def revoke_grant(session: "Session[Service]", params: Params) -> Any:
    """Takes a grant back; answers the agent."""
    table = session.service.table
    entry = table.get(params["agent_id"])
    revoking = table.revoking.revoke(entry, from_wire(str, params["grant_id"]), str(params.get("principal", "")))
    await asyncio.shield(asyncio.ensure_future(revoking))
    return shown(entry, session.service.host).to_wire()


async def denied(session: "Session[Service]", params: Params) -> Any:
    """Refusals of another process of ours."""
    count = from_wire(int, params.get("count", 1))
    if count < 1:
        raise _invalid("/count", "must be at least 1")
    text = {name: from_wire(str, params[name]) for name in ("agent_id", "layer", "rule")}
    session.service.host.denials.on_denied(**text, count=count, detail=from_wire(str, params.get("detail", "")))
    return {}


async def denials(session: "Session[Service]", params: Params) -> Any:
    """All counts as soon as they are not those of revision `after`, or after `wait_s`."""
    ledger, after = session.service.host.denials, from_wire(int, params["after"])
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(min(_LONGEST_WAIT, from_wire(float, params.get("wait_s", 0)))):
            while ledger.revision == after:
                await ledger.grows()
    return ledger.totals().to_wire()


async def canaries(session: "Session[Service]", params: Params) -> Any:
    """What the canaries found, as soon as it is not that of revision `after`, or after `wait_s`."""
    runner, after = session.service.canaries, from_wire(int, params["after"])
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(min(_LONGEST_WAIT, from_wire(float, params.get("wait_s", 0)))):
            while runner.report.at is None or runner.report.revision == after:
                await runner.grows()
    return runner.report.to_wire()


async def ping(session: "Session[Service]", _params: Params) -> Any:
    """Reads the store; `degraded` says what of it cannot be read. Raises SlotUnavailable when its file is gone."""
    store = session.service.host.store
    if not store.still_there():
        raise SlotUnavailable("cannot use orchestrator: agents.db is gone", slot="orchestrator", impl="local-process", since=None)  # fmt: skip
    await store.fact("mark")
    return {"boot_id": kernel.boot_id(), "degraded": store.damaged.judged("ok", "")[1]}


async def shutdown(session: "Session[Service]", _params: Params) -> Any:
    """Ends every agent, then the program."""
    session.service.stop.set()
    return {}


METHODS: Mapping[str, Callable[["Session[Service]", Params], Awaitable[Any]]] = {
    "agent.spawn": spawn,
    "agent.list": page,
    "agent.get": get,
    "agent.signal": send_signal,
    "agent.terminate": terminate,
    "agent.run_once": run_once,
    "agent.stream": stream,
    "agent.attach": attach,
    "agent.stdin": stdin,
    "record.read": record,
    "grant.use": use_grant,
    "grant.revoke": revoke_grant,
    "standing.follow": follow_standings,
    "agent.denied": denied,
    "denials.read": denials,
    "canaries.read": canaries,
    **review.METHODS,
    **approvals.METHODS,
    **states.METHODS,
    "ping": ping,
    "shutdown": shutdown,
}


def _asker(params: Params) -> Asker:
    request_id = from_wire(str, params["request_id"])
    if not 0 < len(request_id) <= _REQUEST_ID:
        raise _invalid("/request_id", f"must have 1 to {_REQUEST_ID} characters")
    return Asker(
        principal=params.get("principal", ""), request_id=request_id, admin=params.get("admin") is True,
        submitter=from_wire(str, params.get("submitter", "")), submitter_admin=params.get("submitter_admin") is True,
        state_id=from_wire(str, params.get("state_id", "")), session_id=from_wire(str, params.get("session_id", "")),
        trace_id=from_wire(str, params.get("trace_id", "")),
    )  # fmt: skip


def _handle(params: Params) -> AgentHandle:
    return AgentHandle(agent_id=from_wire(str, params["agent_id"]), generation=from_wire(int, params["generation"]))


def _invalid(pointer: str, detail: str) -> ValidationError:
    return ValidationError(f"cannot take {pointer}: it {detail}", errors=[{"pointer": pointer, "detail": detail}])


def _let_go(why: str) -> InvalidTransition:
    members: dict[str, Any] = {"id": "", "from": "closed", "to": "written", "blockers": []}
    return InvalidTransition(f"cannot write to stdin: {why}", **members)
