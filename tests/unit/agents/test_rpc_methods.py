"""The RPC of agent-host follows from the operations: one handler each, the same arguments at both ends, and what a
wrong argument is answered with."""

import inspect
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

import pytest

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.orchestrator.off import OffOrchestrator
from agentbox.adapters.remote.agents import HttpOrchestrator
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.agents.bridge import forward
from agentbox.agents.rpc.agent_host_service import AgentHostService
from agentbox.agents.rpc.host_orchestrator import HostOrchestrator
from agentbox.agents.rpc.methods import HAND_WRITTEN, METHODS
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.agent_host.rpc import RpcMethod, rpc_method, rpc_methods
from agentbox.contracts.operations.agent_host import AGENT_HOST
from agentbox.contracts.operations.agents import AGENTS
from agentbox.contracts.orchestrator import AgentFilter, AgentHandle, AgentSpec
from agentbox.contracts.sandboxes import NewSandbox, SessionSandbox
from agentbox.core.paths import Paths
from agentbox.core.records.wire import JsonObj, to_json
from agentbox.core.slot_errors import AdapterDisabled, SlotUnavailable, ValidationError
from agentbox.manifest.declarations.options import Options
from agentbox.manifest.slot_options import ProcessOptions

OPERATIONS = {**rpc_methods(AGENTS), **rpc_methods(AGENT_HOST)}
DERIVED = [one for one in OPERATIONS.values() if one.operation.kind in ("read", "write")]
OWN = {"agent.stdin", "ping", "shutdown"}  # about an attachment and the program: no operation
SPEC = AgentSpec(name="one", argv=("true",))
SAMPLES: Mapping[Any, Any] = {
    str: "text", int: 3, float: 1.5, bool: True, bytes: b"\x00a", JsonObj: {"a": [1]}, AgentSpec: SPEC,
    AgentFilter: AgentFilter(state="running"), AgentHandle: AgentHandle(agent_id="one", generation=2),
    NewSandbox: NewSandbox(name="lab"), SessionSandbox: SessionSandbox(agent="coder", name="lab"), tuple[str, ...]: ("true", "x"), Mapping[str, str]: {"a": "b"},
}  # fmt: skip
WRONG: Mapping[Any, tuple[Any, str]] = {
    str: (5, "must be a string"), int: ("5", "must be an integer"), float: ("5", "must be a number"),
    bool: (1, "must be true or false"), bytes: (5, "must be base64"), JsonObj: ([], "must be an object"),
    AgentSpec: ([], "must be an object"), AgentFilter: ([], "must be an object"),
    NewSandbox: ([], "must be an object"), SessionSandbox: ([], "must be an object"), tuple[str, ...]: (5, "must be an array"), Mapping[str, str]: ([], "must be an object"),
}  # fmt: skip


def plain(kind: Any) -> Any:
    """Without None."""
    if get_origin(kind) is UnionType or type(None) in get_args(kind):
        return next(one for one in get_args(kind) if one is not type(None))
    return kind


def sample(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Literal else SAMPLES[plain(kind)]


def named(method: RpcMethod) -> str:
    return method.name


def test_every_method_has_exactly_one_handler() -> None:
    """Each operation is derived or written by hand, never both; streams and sockets are written by hand."""
    names = Counter([*(one.name for one in OPERATIONS.values()), *OWN])
    assert set(names.values()) == {1}
    assert set(METHODS) == set(names)
    by_hand = {one.name for one in OPERATIONS.values() if one not in DERIVED}
    assert set(HAND_WRITTEN) == by_hand | OWN
    assert {row.name for row in AGENTS.operations} == set(rpc_methods(AGENTS))
    assert {row.name for row in AGENT_HOST.operations} == set(rpc_methods(AGENT_HOST))


def test_a_bridge_serves_the_operations_of_the_slot() -> None:
    """And nothing else: reviews and approvals are those of the other box."""
    slot = {one.name for one in rpc_methods(AGENTS).values()}
    assert set(forward._METHODS) == slot | OWN


@pytest.mark.parametrize("method", DERIVED, ids=named)
def test_implementations_have_the_arguments_of_the_protocol(method: RpcMethod) -> None:
    """By name and kind; the host's have no defaults of their own, since every argument is handed to them."""
    name = method.operation.name
    if name in AGENTS.by_name:
        resource, classes = AGENTS, (HostOrchestrator, HttpOrchestrator)
    else:
        resource, classes = AGENT_HOST, (AgentHostService,)
    wanted = [(one.name, one.kind) for one in resource.signature(name).parameters.values()]
    for kind in classes:
        found = inspect.signature(getattr(kind, name)).parameters.values()
        assert [(one.name, one.kind) for one in found] == wanted
        if kind is not HttpOrchestrator:
            assert all(one.default is inspect.Parameter.empty for one in found)


@pytest.mark.parametrize("method", OPERATIONS.values(), ids=named)
def test_what_is_sent_is_what_arrives(method: RpcMethod) -> None:
    """Every argument, over JSON; a member that is unknown is ignored."""
    arguments = {name: sample(kind) for name, kind in method.types.items()}
    params = method.encode(method.bind((), arguments))
    assert tuple(params) == method.members
    assert method.decode({**params, "unknown": 1, "deadline_ms": 5}) == arguments
    assert to_json(params)


@pytest.mark.parametrize("method", DERIVED, ids=named)
def test_an_argument_that_is_missing_is_its_default_or_an_error(method: RpcMethod) -> None:
    """The session answers a KeyError with the name of the member."""
    params = method.encode({name: sample(kind) for name, kind in method.types.items()})
    resource = AGENTS if method.operation.name in AGENTS.by_name else AGENT_HOST
    defaults = {
        name: one.default
        for name, one in resource.signature(method.operation.name).parameters.items()
        if one.default is not inspect.Parameter.empty
    }
    for member in method.members:
        rest = {name: value for name, value in params.items() if name != member}
        if member in defaults:
            assert method.decode(rest)[member] == defaults[member]
        else:
            with pytest.raises(KeyError, match=member):
                method.decode(rest)


@pytest.mark.parametrize("method", DERIVED, ids=named)
def test_an_argument_of_another_type_is_refused(method: RpcMethod) -> None:
    """With a typed error that says what it must be."""
    params = method.encode({name: sample(kind) for name, kind in method.types.items()})
    kinds = {name: plain(kind) for name, kind in method.types.items() if kind is not AgentHandle}
    if AgentHandle in method.types.values():
        kinds |= {"agent_id": str, "generation": int}
    for name, kind in kinds.items():
        value, detail = (
            ("else", f"must be one of {', '.join(get_args(kind))}")
            if get_origin(kind) is Literal
            else WRONG[kind]
        )
        with pytest.raises(ValidationError) as caught:
            method.decode({**params, name: value})
        pointer = f"/{name}" if get_origin(kind) is Literal else ""
        assert caught.value.members["errors"] == [{"pointer": pointer, "detail": detail}]


def test_deadlines_follow_from_rows() -> None:
    """A grace period or a wait is added; without one the transport decides, unless the row allows long."""

    def seconds(resource: Any, name: str, **arguments: Any) -> float | None:
        return rpc_method(resource, name).seconds(arguments, 7)

    assert seconds(AGENTS, "list") is None
    assert seconds(AGENTS, "spawn") is None
    assert seconds(AGENTS, "terminate", grace_s=2) == 12
    assert seconds(AGENTS, "terminate", grace_s=None) == 17
    assert seconds(AGENTS, "run_once", timeout_s=60) == 70
    assert seconds(AGENT_HOST, "commit_review") == 600
    assert seconds(AGENT_HOST, "read_record", wait_s=30) == 65
    assert seconds(AGENT_HOST, "use_grant") is None


def test_results_on_the_wire() -> None:
    """A record, several as `items`, nothing as an empty object."""
    assert rpc_method(AGENTS, "signal").encode_result(None) == {}
    assert rpc_method(AGENTS, "signal").decode_result({}) is None
    assert rpc_method(AGENT_HOST, "list_reviews").encode_result([]) == {"items": []}
    assert rpc_method(AGENT_HOST, "list_reviews").decode_result({"items": []}) == ()
    handle = AgentHandle(agent_id="one", generation=1)
    assert rpc_method(AGENTS, "spawn").decode_result(handle.to_wire()) == handle
    with pytest.raises(ValidationError):
        rpc_method(AGENT_HOST, "list_reviews").decode_result({"more": []})


def config(tmp_path: Path, use: str) -> SlotConfig[Any]:
    return SlotConfig(
        slot="orchestrator",
        use=use,
        required=True,
        paths=Paths(tmp_path),
        options=ProcessOptions() if use == "local-process" else Options(),
    )


async def refused(host: AgentHost, name: str) -> SlotUnavailable:
    """What the operation is refused with, whatever its arguments."""
    method = rpc_method(AGENT_HOST, name)
    arguments = {name: sample(kind) for name, kind in method.types.items()}
    called = getattr(host, name)(**arguments)
    with pytest.raises(SlotUnavailable) as caught:
        await (anext(called) if method.operation.is_stream else called)
    return caught.value


@pytest.mark.parametrize("name", rpc_methods(AGENT_HOST))
async def test_without_an_agent_host_every_operation_is_refused(tmp_path: Path, name: str) -> None:
    """Typed, with the implementation; the methods of the slot are refused as those of any slot that is off."""
    off = OffOrchestrator(config(tmp_path, "off"), Deps(metrics=Metrics()))
    host = agent_host_client(lambda: off)
    assert host.capabilities == frozenset()
    error = await refused(host, name)
    assert (error.members["impl"], error.members["slot"]) == ("off", "orchestrator")
    with pytest.raises(AdapterDisabled):
        await getattr(off, "get")("one")  # noqa: B009 - derived


@pytest.mark.parametrize("name", rpc_methods(AGENT_HOST))
async def test_what_a_peer_does_not_provide_is_refused_here(tmp_path: Path, name: str) -> None:
    """By its capabilities; other operations reach the connection, and find that it is not open."""
    adapter = LocalProcessOrchestrator(config(tmp_path, "local-process"), Deps(metrics=Metrics()))
    error = await refused(agent_host_client(lambda: adapter), name)
    capability = AGENT_HOST.by_name[name].capability
    wanted = "this orchestrator does not provide them" if capability else "it is not open"
    assert wanted in error.message
    if capability == "review":
        assert error.message == (
            "cannot use reviews and approvals: this orchestrator does not provide them"
        )


async def test_a_call_goes_to_the_peer_of_the_moment(tmp_path: Path) -> None:
    """The slot may be replaced meanwhile."""
    deps = Deps(metrics=Metrics())
    adapters: list[Any] = [OffOrchestrator(config(tmp_path, "off"), deps)]
    host = agent_host_client(lambda: adapters[-1])
    assert (await refused(host, "list_states")).members["impl"] == "off"
    adapters.append(LocalProcessOrchestrator(config(tmp_path, "local-process"), deps))
    adapters[-1].capabilities = frozenset({"review"})
    assert host.capabilities == {"review"}
    assert (await refused(host, "list_states")).members["impl"] == "local-process"
