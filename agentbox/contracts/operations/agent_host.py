"""Operations of agent-host beside those of the orchestrator slot. They are served over JSON-RPC
only.
"""

from functools import partial

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.routes.operation import read, stream, write
from agentbox.contracts.routes.resource import Resource

_REVIEW_SECONDS = 600  # a large review is written, and the replaced files are read
_REPLY_SECONDS = 30  # beside the time that a call waits by itself
_SANDBOX_SECONDS = 30  # a large workspace is copied
_APPROVAL_SECONDS = 3660  # above every `approval_timeout_seconds`; its caller ends it before

_CALLER = ("principal", "admin", "session_id", "trace_id")

_waits = partial(read, deadline_s=_REPLY_SECONDS, deadline_from="wait_s")

AGENT_HOST = Resource(
    "agent_host",
    AgentHost,
    operations=(
        read("list_reviews", rpc="review.list", capability="review"),
        read("show_review", rpc="review.show", capability="review"),
        write(
            "commit_review",
            rpc="review.commit",
            capability="review",
            deadline_s=_REVIEW_SECONDS,
        ),
        write(
            "discard_review",
            rpc="review.discard",
            capability="review",
            deadline_s=_REVIEW_SECONDS,
        ),
        read("show_commits", rpc="review.commits", capability="review"),
        read("read_commits", rpc="review.export", capability="review"),
        write(
            "end_review",
            rpc="review.end",
            capability="review",
            deadline_s=_REVIEW_SECONDS,
        ),
        write("request_approval", rpc="approval.ask", deadline_s=_APPROVAL_SECONDS),
        read("list_approvals", rpc="approval.list", capability="review"),
        read("get_approval", rpc="approval.get", capability="review"),
        write("decide_approval", rpc="approval.decide", capability="review"),
        stream("watch_approvals", rpc="approval.follow", capability="review"),
        read("list_states", rpc="state.list", capability="review"),
        read("get_state", rpc="state.get", capability="review"),
        write("remove_state", rpc="state.remove", capability="review"),
        write("due_states", rpc="state.due", capability="review"),
        write("forget_state", rpc="state.forget", capability="review"),
        write("adopt_state", rpc="state.adopt", capability="review"),
        write(
            "create_sandbox",
            rpc="sandbox.create",
            capability="sandboxes",
            deadline_s=_SANDBOX_SECONDS,
            caller=_CALLER,
        ),
        read("read_session_config", rpc="session.config"),
        write(
            "create_session_sandbox",
            rpc="sandbox.create_session",
            capability="sandboxes",
            deadline_s=_SANDBOX_SECONDS,
            caller=_CALLER,
        ),
        write(
            "suspend_sandbox",
            rpc="sandbox.suspend",
            capability="sandboxes",
            deadline_s=_SANDBOX_SECONDS,
            deadline_from="grace_s",
        ),
        write(
            "resume_sandbox",
            rpc="sandbox.resume",
            capability="sandboxes",
            deadline_s=_SANDBOX_SECONDS,
            caller=_CALLER,
        ),
        read(
            "show_changes",
            rpc="sandbox.changes",
            capability="sandboxes",
            deadline_s=_SANDBOX_SECONDS,
        ),
        write(
            "review_sandbox",
            rpc="sandbox.review",
            capability="sandboxes",
            deadline_s=_SANDBOX_SECONDS,
        ),
        read("list_sandboxes", rpc="sandbox.list", capability="sandboxes"),
        read("get_sandbox", rpc="sandbox.get", capability="sandboxes"),
        write(
            "end_sandbox",
            rpc="sandbox.end",
            capability="sandboxes",
            deadline_s=_SANDBOX_SECONDS,
            deadline_from="grace_s",
        ),
        write(
            "exec_sandbox",
            rpc="sandbox.exec",
            capability="sandboxes",
            deadline_s=_SANDBOX_SECONDS,
            deadline_from="timeout_s",
            caller=_CALLER,
        ),
        stream("stream_exec", rpc="sandbox.stream", capability="sandboxes"),
        write("signal_exec", rpc="sandbox.signal", capability="sandboxes"),
        write("end_exec", rpc="sandbox.end_program", capability="sandboxes"),
        write("write_exec_stdin", rpc="sandbox.stdin", capability="sandboxes", deadline_s=30),
        read("read_sandbox_file", rpc="sandbox.read_file", capability="sandboxes", deadline_s=60),
        write(
            "write_sandbox_file", rpc="sandbox.write_file", capability="sandboxes", deadline_s=60
        ),
        write("remove_sandbox_file", rpc="sandbox.remove_file", capability="sandboxes"),
        _waits("read_record", rpc="record.read", capability="record"),
        write("use_grant", rpc="grant.use"),
        stream("watch_authorizations", rpc="authorization.watch"),
        write("report_denial", rpc="agent.denied"),
        _waits("read_denials", rpc="denials.read", capability="denials"),
        _waits("read_canaries", rpc="canaries.read"),
    ),
)
