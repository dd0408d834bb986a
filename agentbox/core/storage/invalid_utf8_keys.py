"""Row keys with invalid UTF-8: in Python they have a lone surrogate for each invalid byte."""

from typing import Any


def is_sound(key: str) -> bool:
    """Whether a key read by `sqlite_text.each_row` is valid UTF-8."""
    return escape_invalid(key) == key


def escape_invalid(text: str) -> str:
    r"""The text, with `\xff` for each byte that is not valid UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def to_bindable(key: Any) -> Any:
    """The value to bind as `CAST(? AS TEXT)`, so that it equals the stored key."""
    return (
        key.encode("utf-8", "surrogateescape")
        if isinstance(key, str) and not is_sound(key)
        else key
    )
