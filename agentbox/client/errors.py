"""Errors of API calls."""

from collections.abc import Mapping
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode


class ApiError(AgentboxError):
    """An error response with a problem document: `code` is its `code`, `problem` the whole
    document. The hint is the document's, else the request id, by which the log has the cause.

    `retry_after` is in seconds, None if not set.
    """

    def __init__(
        self,
        status: int,
        problem: Mapping[str, Any],
        *,
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        detail = str(problem.get("detail") or f"the API answered {status}")
        hint = str(problem.get("hint") or "")
        super().__init__(detail, hint or (f"request {request_id}" if request_id else ""))
        self.status = status
        self.code = str(problem.get("code", ""))
        self.problem = problem
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return bool(self.problem.get("retryable")) or self.status == 503


class BoxUnreachable(AgentboxError):
    """No response from the API's address."""

    exit_code = ExitCode.NOT_RUNNING

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"cannot reach the box at {url}: {reason}",
            "Check that it is running: `agentbox status`.",
        )


def unreachable(url: str, error: Exception) -> BoxUnreachable:
    """Creates the error for a call without a response."""
    return BoxUnreachable(url, str(error) or type(error).__name__)
