"""Conditions of a request on the current object (RFC 9110 13.1)."""

from dataclasses import dataclass

from agentbox.core.slot_errors import PreconditionFailed


@dataclass(frozen=True, slots=True)
class ObjectPreconditions:
    """None means no condition."""

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, path: str, etag: str | None) -> None:
        """`etag` is that of the object, None if it does not exist. Raises PreconditionFailed with
        the etag."""
        if (self.if_match is not None and not _matches(self.if_match, etag)) or (
            self.if_none_match is not None and _matches(self.if_none_match, etag)
        ):
            raise PreconditionFailed(
                f"cannot change {path}: the object does not match the condition", etag=etag
            )


def _matches(condition: str, etag: str | None) -> bool:
    """Return whether a listed tag, or `*`, matches the object. Strong comparison: weak tags never
    match."""
    if etag is None:
        return False
    return condition.strip() == "*" or etag in [tag.strip() for tag in condition.split(",")]
