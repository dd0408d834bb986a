"""supervisord's ini dialect: values that its reader (4.3) would alter are rejected. The reader
strips values, cuts them at white space followed by `;` or `#`, ends them at a line break, expands
`%`, and has no escape but `%%`. It splits `environment` with a non-POSIX `shlex`, where a backslash
is a plain character and the quotes at both ends are stripped: a value is quoted with the kind of
quotes that it does not contain.
"""

import re
import shlex
from collections.abc import Iterable, Mapping

from agentbox.plan.render.errors import RenderError

_CUT = re.compile(r"\s[;#]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Section = tuple[str, Mapping[str, str]]


def text(sections: Iterable[Section]) -> str:
    """The complete file. Values must come from `unquoted`, `command` or `environment`."""
    return "\n".join(_section(name, values) for name, values in sections)


def _section(name: str, values: Mapping[str, str]) -> str:
    return "".join([f"[{name}]\n", *(f"{key}={value}\n" for key, value in values.items())])


def unquoted(value: str, location: str) -> str:
    """An unquoted value. RenderError names `location` (program and key)."""
    if value != value.strip():
        raise _format_error(location, "leading or trailing space", value)
    return _escape_line(value, location)


def command(argv: Iterable[str], location: str) -> str:
    """An argument list, to be split by `shlex.split`. Raises RenderError."""
    return _escape_line(shlex.join(argv), location)


def environment(values: Mapping[str, str], location: str) -> str:
    """`NAME="value",…`, sorted by name. Raises RenderError for a name or value that the reader
    would alter.
    """
    return ",".join(
        f"{_name(key, location)}={_quoted(values[key], f'{location} {key}')}"
        for key in sorted(values)
    )


def _name(key: str, location: str) -> str:
    if not _NAME.fullmatch(key):
        raise _format_error(location, "a variable name other than letters, digits and _", key)
    return key


def _quoted(value: str, location: str) -> str:
    if value != value.strip("'\""):
        raise _format_error(location, "a quote at its start or end", value)
    if '"' not in value:
        return _escape_line(f'"{value}"', location)
    if "'" not in value:
        return _escape_line(f"'{value}'", location)
    raise _format_error(location, "both kinds of quotes", value)


def _escape_line(value: str, location: str) -> str:
    if any(char in value for char in "\n\r\0"):
        raise _format_error(location, "a line break or NUL", value)
    if _CUT.search(value):
        raise _format_error(location, "white space followed by ; or #", value)
    return value.replace("%", "%%")


def _format_error(location: str, problem: str, value: str) -> RenderError:
    return RenderError(
        f"cannot write {location} to supervisord.conf: its format has no escape for {problem} (in "
        f"{value!r})",
        "change the value, or pass it in a file",
    )
