"""What an annotation tells a reader of the values that it takes: JSON Schema keywords beside the type.

`Annotated[str, chars(most=512)]` is a `str` for every check and every reader of records; only `agentbox.core.records.schema`
looks at the rest. The checks themselves are each slot's own, and the suites send what lies inside and outside.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class SchemaKeywords:
    """Keywords that stand beside those of the type."""

    keywords: dict[str, Any] = field(default_factory=dict)


def schema_keywords(**keywords: Any) -> SchemaKeywords:
    """Keywords as JSON Schema spells them."""
    return SchemaKeywords(keywords)


def bounded_text(
    *, minimum: int = 0, maximum: int | None = None, pattern: str = ""
) -> SchemaKeywords:
    """A length in characters, and a pattern that must be found in the text."""
    keywords: dict[str, Any] = {"minLength": minimum} if minimum else {}
    if maximum is not None:
        keywords["maxLength"] = maximum
    return SchemaKeywords({**keywords, **({"pattern": pattern} if pattern else {})})


def number_range(low: float, high: float | None = None) -> SchemaKeywords:
    """A number, both ends included."""
    return SchemaKeywords({"minimum": low, **({} if high is None else {"maximum": high})})


def item_count(*, minimum: int = 0, maximum: int | None = None) -> SchemaKeywords:
    """A number of items."""
    keywords: dict[str, Any] = {"minItems": minimum} if minimum else {}
    return SchemaKeywords({**keywords, **({} if maximum is None else {"maxItems": maximum})})
