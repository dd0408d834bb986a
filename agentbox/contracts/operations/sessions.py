"""Operations of sessions: over HTTP, and over the JSON-RPC of session-host."""

from functools import partial

from agentbox.contracts.routes.operation import Operation, read, stream, write
from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.session_host import SessionHost
from agentbox.contracts.sessions import NewSession, SessionConfig, SessionEndpoints

_OPEN_SECONDS = (
    180  # sandbox, program, `initialize` and `session/new`, each with a bound of its own
)
_END_SECONDS = 60  # a turn is ended first, then the branch is sealed
_SESSION = "/v1/sessions/{id}"

_opens = partial(write, deadline_s=_OPEN_SECONDS)
_ends = partial(write, deadline_s=_END_SECONDS)

SESSIONS = Resource(
    "sessions",
    SessionEndpoints,
    scope="agents",
    operations=(
        _opens(
            "create",
            "POST /v1/sessions",
            'Opens a session: starts an agent with `protocol = "acp"` in a sandbox of its own. '
            "Repeating it with the same `Idempotency-Key` returns the same session.",
            route="open_session",
            body=NewSession,
            statuses=(201,),
            idempotent=True,
        ),
        read(
            "list",
            "GET /v1/sessions",
            "Sessions, oldest first; closed ones are kept for a while.",
            route="list_sessions",
        ),
        read(
            "show",
            f"GET {_SESSION}",
            "One session, by its id or name, with the questions that wait.",
            route="show_session",
        ),
        _ends(
            "close",
            f"DELETE {_SESSION}",
            "Closes a session: its agent ends, and its branch waits for a review.",
            route="close_session",
            idempotent=True,
        ),
        _opens(
            "prompt",
            f"POST {_SESSION}/prompt",
            "Starts a turn; a suspended session is resumed first. Repeating it with the same "
            "`Idempotency-Key` waits for the same turn.",
            route="prompt_session",
            deadline_from="wait_s",
            idempotent=True,
        ),
        _ends(
            "cancel",
            f"POST {_SESSION}/cancel",
            "Cancels the turn, and the questions that wait; without a turn nothing happens.",
            route="cancel_session",
            idempotent=True,
        ),
        write(
            "configure",
            f"POST {_SESSION}/config",
            "Sets the agent's mode, or one of its options.",
            route="configure_session",
            body=SessionConfig,
            deadline_s=30,
            idempotent=True,
        ),
        _ends(
            "suspend",
            f"POST {_SESSION}/suspend",
            "Ends the agent's program; branch, HOME and grants stay.",
            route="suspend_session",
            idempotent=True,
        ),
        _opens(
            "resume",
            f"POST {_SESSION}/resume",
            "Starts the program of a suspended session again.",
            route="resume_session",
            idempotent=True,
        ),
        write(
            "decide",
            f"POST {_SESSION}/permissions/{{pid}}",
            "Answers a question of the agent. Approvals of the box are answered at "
            "`/v1/approvals`.",
            route="decide_permission",
            body="PermissionBody",
        ),
        stream(
            "stream",
            f"GET {_SESSION}/stream",
            "Everything that happens in a session, from the start or after `since` or "
            "Last-Event-ID.",
            route="stream_session",
        ),
        read(
            "transcript",
            f"GET {_SESSION}/transcript",
            "A part of the transcript: the items after `since`.",
            route="read_transcript",
        ),
        Operation(
            name="connect",
            kind="socket",
            http="GET /v1/acp",
            summary="A WebSocket that speaks the Agent Client Protocol as an agent: each text "
            "message is one JSON-RPC message. The answer has `Acp-Connection-Id`, with which a "
            "lost connection goes on for 60 seconds (`connection`, and `since`: the number of "
            "messages received), and `Agentbox-Received`: the number of messages taken.",
            scope=("agents:read", "agents:write"),
            route="connect_editor",
            statuses=(101,),
            response="",
            media="any",
        ),
    ),
)
SESSION_HOST = Resource(
    "session_host",
    SessionHost,
    operations=(
        _opens("create_session", rpc="session.create"),
        read("list_sessions", rpc="session.list"),
        read("get_session", rpc="session.get"),
        _ends("close_session", rpc="session.close"),
        _opens("prompt_session", rpc="session.prompt", deadline_from="wait_s"),
        _ends("cancel_session", rpc="session.cancel"),
        write("configure_session", rpc="session.configure", deadline_s=30),
        _ends("suspend_session", rpc="session.suspend"),
        _opens("resume_session", rpc="session.resume"),
        write("decide_permission", rpc="session.decide"),
        stream("stream_session", rpc="session.stream"),
        read("read_transcript", rpc="session.transcript"),
        read("read_record", rpc="session.record", deadline_s=10, deadline_from="wait_s"),
        stream("open_editor", rpc="editor.open"),
        write("send_editor", rpc="editor.send", deadline_s=30),
    ),
)
RESOURCES = (SESSIONS,)
