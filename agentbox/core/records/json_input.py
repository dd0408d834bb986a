"""JSON from untrusted sources: one document (RFC 8259), valid UTF-8, limited nesting."""

import json
from typing import Any

MAX_DEPTH = 100  # slot values have depth up to 64, and a request adds a few levels


class InvalidJson(ValueError):
    """The message gives the reason, and contains nothing of the document."""


def read_json(document: str | bytes) -> Any:
    """Parses the document. Raises InvalidJson."""
    try:
        text = document if isinstance(document, str) else document.decode()
        value = json.loads(text, parse_constant=_reject_constant)
    except RecursionError:
        raise _too_deep() from None
    except InvalidJson:
        raise
    except UnicodeDecodeError:
        raise InvalidJson("it is not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise InvalidJson("a number has too many digits") from None  # Python's limit is 4300
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(value)
    if "\\ud" in text or "\\uD" in text:
        _check_text(value)
    return value


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(MAX_DEPTH):
        children = (node.values() if isinstance(node, dict) else node for node in level)
        level = [item for items in children for item in items if isinstance(item, dict | list)]
        if not level:
            return
    raise _too_deep()


def _check_text(document: Any) -> None:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidJson("a string contains a lone surrogate") from None


def _too_deep() -> InvalidJson:
    return InvalidJson(f"it is nested deeper than {MAX_DEPTH}")


def _reject_constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not valid JSON")
