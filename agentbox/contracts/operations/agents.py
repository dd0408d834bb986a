"""Operations of the slot orchestrator."""

from agentbox.contracts.orchestrator import AgentSpec, Orchestrator
from agentbox.contracts.routes.operation import WITHOUT_TOOL, Operation, read, stream, tool, write
from agentbox.contracts.routes.resource import Resource
from agentbox.core.records.wire import record


@record
class NewAgent(AgentSpec):
    """An AgentSpec, and `input` (base64) for a `stdin` that is a pipe: written to the first
    generation as it reads, then closed.
    """

    input: bytes | None = None


_LABELS = "/spec/labels/**"
_CALLER = (
    "principal",
    "admin",
    "session_id",
    "trace_id",
    "submitter",
    "submitter_admin",
    "state_id",
)

AGENTS = Resource(
    "orchestrator",
    Orchestrator,
    endpoints="agents",
    scope="agents",
    operations=(
        write(
            "spawn",
            "POST /v1/agents",
            "Starts an agent. `Idempotency-Key` is the request id: repeating it returns the "
            "same agent.",
            body=NewAgent,
            response="AgentInfo",
            statuses=(201,),
            deadline_s=10,
            idempotent=True,
            redact=(_LABELS, "/stdin"),
            intent="agent.spawn.requested",
            agent=WITHOUT_TOOL,
            rpc="agent.spawn",
            caller=_CALLER,
        ),
        write(
            "run_once",
            "POST /v1/runs",
            "Runs a program to completion and returns its output.",
            body="RunBody",
            body_text="`stdin` is base64.",
            deadline_from="timeout_s",
            redact=(_LABELS, "/stdin"),
            intent="agent.spawn.requested",
            rpc="agent.run_once",
            caller=_CALLER,
        ),
        read(
            "list",
            "GET /v1/agents",
            "Agents by filter.",
            route="list_agents",
            agent=tool(
                "agent/list",
                "Lists agents that you started.",
                without=("parent_id", "label"),
            ),
            rpc="agent.list",
        ),
        read(
            "get",
            "GET /v1/agents/{id}",
            "One agent.",
            route="get_agent",
            agent=tool("agent/status", "Returns an agent that you started, or yourself."),
            rpc="agent.get",
        ),
        stream(
            "stream",
            "GET /v1/agents/{id}/stream",
            "Output and state of an agent, from the start or after `since` or Last-Event-ID.",
            route="stream_agent",
            agent=WITHOUT_TOOL,
            rpc="agent.stream",
        ),
        write(
            "signal",
            "POST /v1/agents/{id}/signal",
            "Sends a signal to the agent's tree.",
            route="signal_agent",
            statuses=(204,),
            rpc="agent.signal",
        ),
        write(
            "terminate",
            "DELETE /v1/agents/{id}",
            "Ends an agent's process tree; returns the exit record.",
            route="terminate_agent",
            idempotent=True,
            deadline_from="grace_s",
            intent="agent.terminate.requested",
            agent=WITHOUT_TOOL,
            rpc="agent.terminate",
        ),
        write(
            "revoke",
            "DELETE /v1/agents/{id}/grants/{grant_id}",
            "Revokes a grant, of all descendants of the agent too; returns the agent.",
            route="revoke_grant",
            idempotent=True,
            rpc="grant.revoke",
            caller=("principal",),
        ),
        Operation(
            name="attach",
            kind="socket",
            http="GET /v1/agents/{id}/attach",
            summary="A WebSocket on the agent's pipes, one client at a time: binary messages are "
            "bytes of stdin and stdout, an empty one closes stdin, a text message is a problem. It "
            "ends with the agent's output.",
            route="attach_agent",
            statuses=(101,),
            agent=WITHOUT_TOOL,
            rpc="agent.attach",
        ),
    ),
)
RESOURCES = (AGENTS,)
