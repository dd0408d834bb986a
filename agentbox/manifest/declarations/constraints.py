"""Constraints of a key's type, for `Annotated`. Each has its keywords of JSON Schema, and the same
test in Python, so that a valid manifest needs no validator (ADR 0013). A constraint allows every
value of another type; the type is tested first. Standard library only.
"""

import math
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol


class KeyConstraint(Protocol):
    """What an annotation says about a value."""

    def keywords(self) -> dict[str, Any]:
        """Its keywords of JSON Schema."""

    def allows(self, value: Any) -> bool:
        """True unless the value violates those keywords."""


@dataclass(frozen=True)
class TypeInfo:
    """The name of a type, with the text, the noun and the example (in TOML) that messages
    show.
    """

    name: str
    doc: str
    noun: str
    example: str

    def keywords(self) -> dict[str, Any]:
        """Annotations only."""
        return {"title": self.name, "description": self.doc}

    def allows(self, _value: Any) -> bool:
        """A name constrains nothing."""
        return True


@dataclass(frozen=True)
class Range:
    """Inclusive bounds of a number."""

    minimum: float
    maximum: float

    def keywords(self) -> dict[str, Any]:
        """Both bounds."""
        return {"minimum": self.minimum, "maximum": self.maximum}

    def allows(self, value: Any) -> bool:
        """A number within the bounds."""
        return not is_number(value) or self.minimum <= value <= self.maximum


@dataclass(frozen=True)
class Pattern:
    """A pattern that text contains; most are anchored."""

    text: str

    def keywords(self) -> dict[str, Any]:
        """The pattern, in the dialect of ECMA 262."""
        return {"pattern": self.text}

    def allows(self, value: Any) -> bool:
        """Text with a match."""
        return not isinstance(value, str) or compiled(self.text).search(value) is not None


@dataclass(frozen=True)
class MinItems:
    """The minimum number of items of a list."""

    items: int

    def keywords(self) -> dict[str, Any]:
        """The number."""
        return {"minItems": self.items}

    def allows(self, value: Any) -> bool:
        """A list that is long enough."""
        return not isinstance(value, list) or len(value) >= self.items


@dataclass(frozen=True)
class Unique:
    """A list without duplicates."""

    def keywords(self) -> dict[str, Any]:
        """The flag."""
        return {"uniqueItems": True}

    def allows(self, value: Any) -> bool:
        """A list without duplicates; items need not be hashable."""
        return not isinstance(value, list) or all(
            item not in value[:index] for index, item in enumerate(value)
        )


def is_integer(value: object) -> bool:
    """TOML and the schema distinguish integers from floats and booleans."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Integers and finite floats."""
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the schema. Python's `$` also matches before a final newline; that of JSON
    Schema (ECMA 262) does not.
    """
    return re.compile(re.sub(r"(?<!\\)\$(?=\||\)|$)", r"\\Z", pattern))
