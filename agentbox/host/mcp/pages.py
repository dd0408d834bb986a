"""The arguments of tools that list."""

from typing import Annotated, Any

from pydantic import Field

Limit = Annotated[int, Field(description="At most so many.", ge=1, le=500)]
Cursor = Annotated[str, Field(description="`next_cursor` of the page before.")]


def page_query(limit: int, cursor: str) -> dict[str, Any]:
    """The query of a list of the box."""
    return {"limit": limit, "cursor": cursor or None}
