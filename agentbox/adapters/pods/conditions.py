"""What a caller demands of the object that is there (RFC 9110 13.1)."""

from dataclasses import dataclass

from agentbox.core.slot_errors import PreconditionFailed


@dataclass(frozen=True, slots=True)
class Conditions:
    """None demands nothing."""

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, path: str, etag: str | None) -> None:
        """`etag` is that of the object, None where there is none. Raises PreconditionFailed with it."""
        if (self.if_match is not None and not _matches(self.if_match, etag)) or (
            self.if_none_match is not None and _matches(self.if_none_match, etag)
        ):
            raise PreconditionFailed(
                f"cannot change {path}: what is there is not what was asked for", etag=etag
            )


def _matches(condition: str, etag: str | None) -> bool:
    """Whether one of the listed tags, or `*`, is that of the object. Strong comparison: a weak tag never matches."""
    if etag is None:
        return False
    return condition.strip() == "*" or etag in [tag.strip() for tag in condition.split(",")]
