"""Errors of the agent API in JSON-RPC 2.0 form. `data.code` is the `code` of the API's problem
documents."""

from typing import Any, Final

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)  # JSON-RPC 2.0, section 5.1
FAILED, DENIED, BUSY, UNAUTHENTICATED, UNSUPPORTED = (
    -32000,
    -32001,
    -32002,
    -32003,
    -32004,
)  # our own, from the range for servers


class AgentApiError(Exception):
    """Becomes the `error` of a response. `code`: as in the API's problem documents; `rule`: the
    denying rule or ""; `data` is included unchanged."""

    def __init__(
        self, number: int, message: str, code: str = "", *, rule: str = "", **data: Any
    ) -> None:
        super().__init__(message)
        members = {"code": code, "rule": rule}
        self.number, self.message, self.rule = number, message, rule
        self.data = {**{name: value for name, value in members.items() if value}, **data}

    def to_wire(self) -> dict[str, Any]:
        """The member `error`."""
        return {
            "code": self.number,
            "message": self.message,
            **({"data": self.data} if self.data else {}),
        }


def permission_denied(rule: str, message: str) -> AgentApiError:
    """A missing right."""
    return AgentApiError(DENIED, message, "permission-denied", rule=rule)


def invalid_params(message: str) -> AgentApiError:
    """Invalid arguments."""
    return AgentApiError(INVALID_PARAMS, message, "validation")


NO_IDENTITY: Final = "cannot sign: agents have no identity in this release"
