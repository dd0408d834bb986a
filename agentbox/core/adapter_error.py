"""The base of the errors that an adapter may raise, and its problem document (RFC 9457)."""

from collections.abc import Mapping
from typing import Any, ClassVar

from agentbox.core.errors import AgentboxError

PROBLEM = "urn:agentbox:problem:"
REQUEST = "urn:agentbox:request:"


class AdapterError(AgentboxError):
    """A typed error of a slot. `members` are exactly those in `names`. `detail` never contains a
    credential, a DSN or a payload. `retry_after` is in seconds.
    """

    code: ClassVar[str]
    status: ClassVar[int]
    retryable: ClassVar[bool] = False
    names: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, detail: str, *, hint: str = "", retry_after: float | None = None, **members: Any
    ) -> None:
        if set(members) != set(self.names):
            raise TypeError(
                f"{type(self).__name__} takes the members {self.names}, got {tuple(members)}"
            )
        super().__init__(detail, hint)
        self.retry_after = retry_after
        self.members: Mapping[str, Any] = members

    def to_problem(self, request_id: str = "") -> dict[str, Any]:
        """The body of `application/problem+json`; without an empty `hint`."""
        hint = {"hint": self.hint} if self.hint else {}
        return {
            "type": PROBLEM + self.code,
            "title": self.code.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.message,
            "instance": REQUEST + request_id,
            "code": self.code,
            "retryable": self.retryable,
            **hint,
            **self.members,
        }
