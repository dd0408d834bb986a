"""JSON from outside: one document as RFC 8259 has it, text that UTF-8 can carry, nested no deeper than any reader follows."""

import json
from typing import Any

DEEPEST = 100  # a slot takes values of depth 64, and a request puts a few levels around them


class NotJson(ValueError):
    """The text says why, and holds nothing of the document."""


def read_json(document: str | bytes) -> Any:
    """What the document says. Raises NotJson."""
    try:
        text = document if isinstance(document, str) else document.decode()
        found = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise _too_deep() from None
    except NotJson:
        raise
    except UnicodeDecodeError:
        raise NotJson("it is no UTF-8") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise NotJson("a number has too many digits") from None  # Python reads 4300
    if text.count("{") + text.count("[") > DEEPEST:
        _check_depth(found)
    if "\\ud" in text or "\\uD" in text:
        _check_text(found)
    return found


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEEPEST):
        below = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in below for item in items if isinstance(item, dict | list)]
        if not level:
            return
    raise _too_deep()


def _check_text(document: Any) -> None:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotJson("a text holds a lone surrogate") from None


def _too_deep() -> NotJson:
    return NotJson(f"it is nested deeper than {DEEPEST}")


def _refuse(name: str) -> Any:
    raise NotJson(f"{name} is no number of JSON")
