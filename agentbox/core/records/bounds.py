"""JSON Schema keywords in annotations. `Annotated[str, bounded_text(maximum=512)]` is a `str` for
type checks and record readers; only `agentbox.core.records.schema` reads the keywords. Each slot
checks its values itself; the contract suites test the bounds.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class SchemaKeywords:
    """Keywords added to those of the type."""

    keywords: dict[str, Any] = field(default_factory=dict)


def schema_keywords(**keywords: Any) -> SchemaKeywords:
    """Keywords with their JSON Schema names."""
    return SchemaKeywords(keywords)


def bounded_text(
    *, minimum: int = 0, maximum: int | None = None, pattern: str = ""
) -> SchemaKeywords:
    """Length in characters, and a pattern to be found in the text."""
    keywords: dict[str, Any] = {"minLength": minimum} if minimum else {}
    if maximum is not None:
        keywords["maxLength"] = maximum
    return SchemaKeywords({**keywords, **({"pattern": pattern} if pattern else {})})


def number_range(low: float, high: float | None = None) -> SchemaKeywords:
    """Inclusive bounds of a number."""
    return SchemaKeywords({"minimum": low, **({} if high is None else {"maximum": high})})


def item_count(*, minimum: int = 0, maximum: int | None = None) -> SchemaKeywords:
    """Number of items."""
    keywords: dict[str, Any] = {"minItems": minimum} if minimum else {}
    return SchemaKeywords({**keywords, **({} if maximum is None else {"maxItems": maximum})})
