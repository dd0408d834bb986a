# Written by tools/sync_client.py from async_client/sandboxes.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""Programs run under one agent's confinement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentbox.client.transport import decode, decode_event, idempotency_header, without_none

if TYPE_CHECKING:
    from agentbox.client.sync.attach import Attached
    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.orchestrator import Limits, StreamItem
    from agentbox.contracts.sandboxes import ExecResult, Sandbox
    from agentbox.core.records.page import Page


class SandboxesClient:
    """Programs run under one agent's confinement. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def create(
        self,
        name: str,
        *,
        profile: str = "",
        env: Mapping[str, Any] | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
        labels: Mapping[str, Any] | None = None,
        ttl_s: float | None = None,
        request_id: str = "",
    ) -> Sandbox:
        """Creates a sandbox: branch, HOME, token and policy of an agent without a program.
        `Idempotency-Key` is the request id: repeating it returns the same sandbox. The same
        `request_id` has one effect."""
        from agentbox.contracts.sandboxes import Sandbox

        response = self._box.request(
            "start_sandbox",
            body={
                "name": name,
                "profile": profile,
                **without_none({"env": env, "limits": limits, "labels": labels, "ttl_s": ttl_s}),
            },
            headers=idempotency_header(request_id),
            wait_s=30,
        )
        return decode(Sandbox, response)

    def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[Sandbox]:
        """Sandboxes, oldest first; those that have ended are kept for a while, as agents are."""
        from agentbox.contracts.sandboxes import Sandbox
        from agentbox.core.records.page import Page

        response = self._box.request("list_sandboxes", query={"limit": limit, "cursor": cursor})
        return decode(Page[Sandbox], response)

    def show(self, sandbox_id: str) -> Sandbox:
        """One sandbox, with its programs and its branch."""
        from agentbox.contracts.sandboxes import Sandbox

        response = self._box.request("show_sandbox", {"id": sandbox_id})
        return decode(Sandbox, response)

    def end(self, sandbox_id: str, *, grace_s: float | None = None) -> Sandbox:
        """Ends all of its programs; its branch is sealed and waits for a review."""
        from agentbox.contracts.sandboxes import Sandbox

        response = self._box.request(
            "end_sandbox",
            {"id": sandbox_id},
            query={"grace_s": grace_s},
            wait_s=(60 if grace_s is None else grace_s) + 10,
        )
        return decode(Sandbox, response)

    def exec(
        self,
        sandbox_id: str,
        argv: Sequence[str],
        *,
        request_id: str = "",
        cwd: str = "",
        env: Mapping[str, Any] | None = None,
        stdin: bytes | None = None,
        interactive: bool = False,
        timeout_s: float = 600,
        max_output: int = 1048576,
        detach: bool = False,
    ) -> ExecResult:
        """Runs a program in the sandbox; returns its output and exit, whatever they are. Repeating
        it with the same `Idempotency-Key` waits for the same program. The same `request_id` has one
        effect."""
        from agentbox.contracts.sandboxes import ExecResult

        response = self._box.request(
            "exec_sandbox",
            {"id": sandbox_id},
            body={
                "argv": argv,
                "cwd": cwd,
                "interactive": interactive,
                "timeout_s": timeout_s,
                "max_output": max_output,
                "detach": detach,
                **without_none({"env": env, "stdin": stdin}),
            },
            headers=idempotency_header(request_id),
            wait_s=timeout_s + 10,
        )
        return decode(ExecResult, response)

    def stream(
        self,
        sandbox_id: str,
        n: str,
        *,
        since: int = 0,
        follow: bool = True,
        reconnect_timeout: float = 60.0,
    ) -> Iterator[StreamItem]:
        """Output and exit of a program, from the start or after `since` or Last-Event-ID;
        `generation` is the number of the program."""
        from agentbox.contracts.orchestrator import StreamItem

        events = self._box.stream(
            "stream_exec",
            {"id": sandbox_id, "n": n},
            query={"since": since, "follow": follow},
            reconnect_timeout=reconnect_timeout,
        )
        for event in events:
            yield decode_event(StreamItem, event)

    def signal(self, sandbox_id: str, n: str, signal: str) -> None:
        """Sends a signal to a program; STOP and CONT to all of its processes."""
        self._box.request("signal_exec", {"id": sandbox_id, "n": n}, body={"signal": signal})

    @contextmanager
    def attach(self, sandbox_id: str, n: str) -> Iterator[Attached]:
        """A WebSocket on the pipes of a program that was started with `interactive`: binary
        messages are bytes of stdin and stdout (from its start), an empty one closes stdin, a text
        message is a problem. It ends with the output."""
        attached = self._box.open_socket("attach_exec", {"id": sandbox_id, "n": n})
        try:
            yield attached
        finally:
            attached.close()

    def read(self, sandbox_id: str, path: str) -> bytes:
        """A regular file below `workspace/` or `tmp/` of at most `sandboxes.max_file`. No link is
        followed."""
        response = self._box.request(
            "read_sandbox_file",
            {"id": sandbox_id, "path": path},
            headers={"Accept": "*/*"},
            wait_s=60,
        )
        return response.content
