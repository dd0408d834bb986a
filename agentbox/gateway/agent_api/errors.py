"""Errors of the door in the form of JSON-RPC 2.0. `data.code` is the same word as in the API's problems."""

from typing import Any, Final

PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603  # JSON-RPC 2.0, section 5.1
FAILED, DENIED, BUSY, STRANGER, NOT_YET = -32000, -32001, -32002, -32003, -32004  # ours, from the range left to servers


class DoorError(Exception):
    """Becomes the `error` of an answer. `code` is a word of the API's problems; `rule` names what refused it, "" where
    nothing did; `data` is shown as it is."""

    def __init__(self, number: int, message: str, code: str = "", *, rule: str = "", **data: Any) -> None:
        super().__init__(message)
        named = {"code": code, "rule": rule}
        self.number, self.message, self.rule = number, message, rule
        self.data = {**{name: word for name, word in named.items() if word}, **data}

    def wire(self) -> dict[str, Any]:
        """The member `error`."""
        return {"code": self.number, "message": self.message, **({"data": self.data} if self.data else {})}


def denied(rule: str, message: str) -> DoorError:
    """A right that is not held."""
    return DoorError(DENIED, message, "permission-denied", rule=rule)


def params(message: str) -> DoorError:
    """Arguments that do not fit."""
    return DoorError(PARAMS, message, "validation")


NO_IDENTITY: Final = "cannot sign: this release gives agents no identity of their own"
