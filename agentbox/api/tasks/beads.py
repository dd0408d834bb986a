"""How a task is recorded as a bead."""

import re
from typing import Any

from agentbox.adapters.orchestrator.spec_checks import check_form, check_program
from agentbox.contracts.beads import Bead
from agentbox.contracts.orchestrator import MAX_RUN_SECONDS, AgentInfo, ExitRecord
from agentbox.contracts.task_records import Task, TaskState
from agentbox.contracts.tasks import DEFAULT_TIMEOUT, TaskBody
from agentbox.core import clock
from agentbox.core.http.problems import invalid

_REF = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)  # a UUID, as written by `agentbox.core.ids`


def check_body(body: TaskBody, agents: frozenset[str]) -> None:
    """Raises ValidationError if it cannot run as a task; `agents` are the names in [agents]."""
    if not 0 < body.timeout_s <= MAX_RUN_SECONDS:
        raise invalid("/timeout_s", f"must be above 0 and at most {MAX_RUN_SECONDS:g}")
    if body.spec.restart != "never":
        raise invalid("/spec/restart", "must be never: a task runs once")
    check_form(body.spec, "/spec")
    check_program(body.spec, agents, "/spec")


def bead_data(body: TaskBody, ref: str) -> dict[str, Any]:
    """The `data` of the bead, for readers (redacted); the runner reads its spool."""
    spec = body.spec
    return {
        "task": {
            "ref": ref,
            "argv": list(spec.argv),
            "profile": spec.profile,
            "cwd": spec.cwd,
            "timeout_s": body.timeout_s,
            "input_bytes": len(body.input or b""),
        }
    }


def spool_ref(bead: Bead) -> str:
    """The name of the spool entry that a bead refers to; "" if none. Any client may write
    a bead.
    """
    task = bead.data.get("task")
    ref = task.get("ref") if isinstance(task, dict) else ""
    return ref if isinstance(ref, str) and _REF.fullmatch(ref) else ""


def task_state(bead: Bead) -> TaskState:
    """The task state for a bead's status and outcome."""
    if bead.status == "closed":
        states: dict[str | None, TaskState] = {"done": "succeeded", "cancelled": "cancelled"}
        return states.get(bead.outcome, "failed")
    return "running" if bead.status == "claimed" else "queued"


def to_task(bead: Bead, agent_id: str | None = None) -> Task:
    """Converts a bead to a task. `agent_id` is that of a running task; a finished one has it in its
    result.
    """
    data: Any = bead.data.get("task", {})
    result: Any = bead.result if isinstance(bead.result, dict) else {}
    return Task(
        task_id=bead.id,
        state=task_state(bead),
        name=bead.title,
        argv=tuple(data.get("argv", ())),
        profile=data.get("profile", ""),
        creator=bead.creator,
        attempts=bead.attempts,
        timeout_s=data.get("timeout_s", DEFAULT_TIMEOUT),
        created_at=clock.to_wire(bead.created_at),
        closed_at=clock.to_wire(bead.closed_at) if bead.closed_at else None,
        agent_id=result.get("agent_id", agent_id),
        exit=result.get("exit"),
        isolation=result.get("isolation"),
        note=bead.note,
        usage=result.get("usage"),
    )


def bead_result(info: AgentInfo) -> dict[str, Any]:
    """The `result` of the bead: agent, exit, isolation and usage."""
    wire = info.to_wire()
    return {
        "agent_id": info.handle.agent_id,
        **{name: wire[name] for name in ("exit", "isolation", "usage")},
    }


def describe_exit(exit_record: ExitRecord, timeout_s: float) -> str:
    """Describes how a run ended."""
    if exit_record.reason == "timeout":
        return f"ended after {timeout_s:g} s, its time limit"
    if exit_record.reason == "lost":
        return "agent-host died while it ran: its processes were killed, so the result is unknown"
    if exit_record.reason == "limit":
        return "ended because it crossed a limit"
    if exit_record.reason == "terminated":
        return "ended on request"
    if exit_record.signal is not None:
        return f"ended by {exit_record.signal}"
    return f"exit code {exit_record.code}"
