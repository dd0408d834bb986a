"""Operations of sandboxes: several programs under one agent's confinement."""

from agentbox.contracts.routes.operation import Operation, read, stream, write
from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.sandboxes import NewSandbox, SandboxEndpoints, SandboxFileEndpoints

_FILE = "/v1/sandboxes/{id}/files/{path*}"

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
        Operation(
            name="attach",
            kind="socket",
            http="GET /v1/sandboxes/{id}/exec/{n}/attach",
            summary="A WebSocket on the pipes of a program that was started with `interactive`: "
            "binary messages are bytes of stdin and stdout (from its start), an empty one closes "
            "stdin, a text message is a problem. It ends with the output.",
            route="attach_exec",
            statuses=(101,),
        ),
    ),
)
SANDBOX_FILES = Resource(
    "sandboxes",
    SandboxFileEndpoints,
    endpoints="sandbox_files",
    scope="agents",
    operations=(
        read(
            "read",
            f"GET {_FILE}",
            "A regular file below `workspace/` or `tmp/` of at most `sandboxes.max_file`. No link "
            "is followed.",
            route="read_sandbox_file",
            response="Body",
            media="any",
            deadline_s=60,
        ),
        write(
            "write",
            f"PUT {_FILE}",
            "Creates or replaces a file, of at most `sandboxes.max_file`; missing directories are "
            "made. No link is followed.",
            route="write_sandbox_file",
            body="Body",
            statuses=(204,),
            response="",
            media="any",
            idempotent=True,
            deadline_s=60,
        ),
        write(
            "remove",
            f"DELETE {_FILE}",
            "Removes a file, a link (not its target) or an empty directory.",
            route="remove_sandbox_file",
            statuses=(204,),
            response="",
            media="any",
        ),
    ),
)
RESOURCES = (SANDBOXES, SANDBOX_FILES)
