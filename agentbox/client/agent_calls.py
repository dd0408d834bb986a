"""Agent requests and records, shared by both clients."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from agentbox.client.records import Wire
from agentbox.client.transport import Call, build_call

EXTRA_WAIT_SECONDS = 10.0  # added to a timeout or grace enforced by the box


@dataclass(frozen=True, kw_only=True)
class AgentExit(Wire):
    """How a generation ended. `at` is RFC 3339."""

    code: int | None
    signal: str | None
    reason: str
    at: str


@dataclass(frozen=True, kw_only=True)
class Agent(Wire):
    """The current state of an agent. `generation` increases by 1 with each restart; `isolation`:
    what the sandbox enforced; `denials`: counts by layer and rule; `policy`: profile, grants with
    ids, model budget; `branch`: location of its files and the pending review; `budget`: model usage
    and remaining budget (these three are empty in lists); `limits`: each cap with its highest use;
    `state_id`: the state whose memory and pods it uses."""

    agent_id: str
    generation: int
    spec: Mapping[str, Any]
    state: str
    pid: int | None
    started_at: str | None
    restarts: int
    exit: AgentExit | None
    isolation: Mapping[str, Any]
    denials: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    branch: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)
    state_id: str = ""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        exit_data = data["exit"]
        agent_exit = None if exit_data is None else AgentExit.from_wire(exit_data)
        return super().from_wire({**data, **data["handle"], "exit": agent_exit})


@dataclass(frozen=True, kw_only=True)
class RunOutput(Wire):
    """The result of a one-shot run. `truncated`: output beyond `max_output` was dropped."""

    exit: AgentExit
    stdout: bytes
    stderr: bytes
    truncated: bool
    isolation: Mapping[str, Any]

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        outputs = {name: base64.b64decode(data[name]) for name in ("stdout", "stderr")}
        return super().from_wire({**data, **outputs, "exit": AgentExit.from_wire(data["exit"])})


def spawn_agent(spec: Mapping[str, Any], request_id: str, input_data: bytes | None) -> Call:
    """POST of a spec; `input_data` is written to stdin, which is then closed."""
    extra = {} if input_data is None else {"input": _encode_base64(input_data)}
    return build_call("spawn", body={**spec, **extra}, headers=_idempotency_header(request_id))


def run_once(
    spec: Mapping[str, Any], request_id: str, stdin: bytes, timeout_s: float, max_output: int
) -> Call:
    """POST of a one-shot run."""
    body = {
        "spec": dict(spec),
        "stdin": _encode_base64(stdin),
        "timeout_s": timeout_s,
        "max_output": max_output,
    }
    return build_call("run_once", body=body, headers=_idempotency_header(request_id))


def list_agents(limit: int, cursor: str | None, **filters: str | None) -> Call:
    """GET of a page; `filters` are state, name, parent_id and label."""
    return build_call("list_agents", query={**filters, "limit": limit, "cursor": cursor})


def get_agent(agent_id: str) -> Call:
    """GET of one agent."""
    return build_call("get_agent", {"id": agent_id})


def signal_agent(agent_id: str, generation: int, signal: str) -> Call:
    """POST of a signal."""
    return build_call(
        "signal_agent", {"id": agent_id}, body={"generation": generation, "signal": signal}
    )


def revoke_grant(agent_id: str, grant_id: str) -> Call:
    """DELETE of a grant."""
    return build_call("revoke_grant", {"id": agent_id, "grant_id": grant_id})


def terminate_agent(agent_id: str, generation: int, grace_s: float | None) -> Call:
    """DELETE of a process tree."""
    return build_call(
        "terminate_agent", {"id": agent_id}, query={"generation": generation, "grace_s": grace_s}
    )


def _idempotency_header(request_id: str) -> dict[str, str]:
    return {"Idempotency-Key": request_id} if request_id else {}


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
