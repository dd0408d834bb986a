"""The JSON Canonicalization Scheme (RFC 8785): one sequence of bytes for equal JSON."""

import json
import math
from decimal import Decimal
from typing import Any, Final

_EXACT: Final = 2**53


def jcs(data: Any) -> bytes:
    """The JSON Canonicalization Scheme (RFC 8785). Raises ValueError for data that has no such
    form: NaN, infinities, integers beyond 2^53, lone surrogates.
    """
    return _jcs(data).encode()


def _jcs(data: Any) -> str:
    if isinstance(data, dict):
        names = sorted(data, key=lambda name: name.encode("utf-16-be"))  # section 3.2.3
        return "{" + ",".join(f"{_text(name)}:{_jcs(data[name])}" for name in names) + "}"
    if isinstance(data, list | tuple):
        return "[" + ",".join(map(_jcs, data)) + "]"
    if isinstance(data, int) and not isinstance(data, bool):
        if abs(data) > _EXACT:
            raise ValueError(f"{data} is no exact JSON number")
        return str(data)
    if isinstance(data, float):
        return _number(data)
    return _text(data)


def _text(value: str | bool | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """As ECMAScript writes it (section 3.2.2.3)."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    if value == 0:
        return "0"
    digits, _, exponent = f"{Decimal(repr(abs(value))).normalize():e}".partition("e")
    digits, power = digits.replace(".", ""), int(exponent or 0)
    if 0 <= power < 21:
        whole = digits[: power + 1].ljust(power + 1, "0")
        text = whole + (f".{digits[power + 1 :]}" if digits[power + 1 :] else "")
    elif -7 < power < 0:
        text = "0." + "0" * (-power - 1) + digits
    else:
        fraction = f".{digits[1:]}" if digits[1:] else ""
        text = f"{digits[0]}{fraction}e{'+' if power > 0 else '-'}{abs(power)}"
    return text if value > 0 else f"-{text}"
