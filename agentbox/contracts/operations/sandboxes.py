"""Operations of sandboxes: several programs under one agent's confinement."""

from agentbox.contracts.routes.operation import read, stream, write
from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.sandboxes import NewSandbox, SandboxEndpoints

SANDBOXES = Resource(
    "sandboxes",
    SandboxEndpoints,
    scope="agents",
    operations=(
        write(
            "create",
            "POST /v1/sandboxes",
            "Creates a sandbox: branch, HOME, token and policy of an agent without a program. "
            "`Idempotency-Key` is the request id: repeating it returns the same sandbox.",
            route="start_sandbox",
            body=NewSandbox,
            statuses=(201,),
            deadline_s=30,
            idempotent=True,
        ),
        read(
            "list",
            "GET /v1/sandboxes",
            "Sandboxes, oldest first; those that have ended are kept for a while, as agents are.",
            route="list_sandboxes",
        ),
        read(
            "show",
            "GET /v1/sandboxes/{id}",
            "One sandbox, with its programs and its branch.",
            route="show_sandbox",
        ),
        write(
            "end",
            "DELETE /v1/sandboxes/{id}",
            "Ends all of its programs; its branch is sealed and waits for a review.",
            route="end_sandbox",
            idempotent=True,
            deadline_from="grace_s",
        ),
        write(
            "exec",
            "POST /v1/sandboxes/{id}/exec",
            "Runs a program in the sandbox; returns its output and exit, whatever they are. "
            "Repeating it with the same `Idempotency-Key` waits for the same program.",
            route="exec_sandbox",
            deadline_from="timeout_s",
            idempotent=True,
        ),
        stream(
            "stream",
            "GET /v1/sandboxes/{id}/exec/{n}/stream",
            "Output and exit of a program, from the start or after `since` or Last-Event-ID; "
            "`generation` is the number of the program.",
            route="stream_exec",
        ),
        write(
            "signal",
            "POST /v1/sandboxes/{id}/exec/{n}/signal",
            "Sends a signal to a program; STOP and CONT to all of its processes.",
            route="signal_exec",
            body="SignalExecBody",
            statuses=(204,),
        ),
    ),
)
RESOURCES = (SANDBOXES,)
