"""What an annotation tells a reader of the values that it takes: JSON Schema keywords beside the type.

`Annotated[str, chars(most=512)]` is a `str` for every check and every reader of records; only `agentbox.core.records.schema`
looks at the rest. The checks themselves are each slot's own, and the suites send what lies inside and outside.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Bounds:
    """Keywords that stand beside those of the type."""

    keywords: dict[str, Any] = field(default_factory=dict)


def says(**keywords: Any) -> Bounds:
    """Keywords as JSON Schema spells them."""
    return Bounds(keywords)


def chars(*, least: int = 0, most: int | None = None, pattern: str = "") -> Bounds:
    """A length in characters, and a pattern that must be found in the text."""
    keywords: dict[str, Any] = {"minLength": least} if least else {}
    if most is not None:
        keywords["maxLength"] = most
    return Bounds({**keywords, **({"pattern": pattern} if pattern else {})})


def between(low: float, high: float | None = None) -> Bounds:
    """A number, both ends included."""
    return Bounds({"minimum": low, **({} if high is None else {"maximum": high})})


def count(*, least: int = 0, most: int | None = None) -> Bounds:
    """A number of items."""
    keywords: dict[str, Any] = {"minItems": least} if least else {}
    return Bounds({**keywords, **({} if most is None else {"maxItems": most})})
