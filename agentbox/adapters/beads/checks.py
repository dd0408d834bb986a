"""What a caller may state: limits of B15, and text that can be kept."""

import uuid
from dataclasses import replace
from datetime import datetime

from agentbox.adapters.beads import contract
from agentbox.adapters.beads.contract import BeadSpec
from agentbox.adapters.beads.schedules import Every
from agentbox.adapters.text import check_json, check_range, check_size, check_text
from agentbox.adapters.wire import refuse


def check_spec(spec: BeadSpec) -> BeadSpec:
    """The spec with its time cut to milliseconds. Raises ValidationError or ValueTooLarge."""
    check_text(spec.title, "/title", longest=contract.MAX_TITLE)
    check_text(spec.creator, "/creator", longest=contract.MAX_TITLE)
    check_size(len(check_text(spec.body, "/body").encode()), "/body", contract.MAX_DOCUMENT)
    check_range(spec.priority, "/priority", contract.PRIORITY)
    check_range(spec.max_attempts, "/max_attempts", contract.ATTEMPTS)
    check_tags(spec.tags)
    check_json(spec.data, "/data")
    if spec.dedup_key is not None:
        check_text(spec.dedup_key, "/dedup_key", longest=contract.MAX_TITLE)
    if spec.every is not None:
        Every.parse(spec.every)
    if spec.overlap not in ("skip", "queue"):
        raise refuse("/overlap", "must be skip or queue")
    return replace(spec, not_before=_milliseconds(spec.not_before))


def check_tags(tags: tuple[str, ...]) -> None:
    """Raises ValidationError."""
    if len(tags) > contract.MAX_TAGS:
        raise refuse("/tags", f"has {len(tags)} items, at most {contract.MAX_TAGS} are allowed")
    for index, tag in enumerate(tags):
        check_text(tag, f"/tags/{index}", longest=contract.MAX_TAG)


def check_lease(lease_id: str, lease_s: int | None = None) -> None:
    """Raises ValidationError for an id that is no UUID, or a length out of range."""
    try:
        uuid.UUID(lease_id)
    except (ValueError, AttributeError, TypeError):
        raise refuse("/lease_id", "must be a UUID") from None
    if lease_s is not None:
        check_range(lease_s, "/lease_s", contract.LEASE_SECONDS)


def check_release(delay_s: int, note: str) -> None:
    """Raises ValidationError or ValueTooLarge."""
    check_range(delay_s, "/delay_s", contract.DELAY_SECONDS)
    check_note(note)


def check_note(note: str) -> None:
    """Raises ValidationError or ValueTooLarge."""
    check_size(len(check_text(note, "/note").encode()), "/note", contract.MAX_DOCUMENT)


def check_outcome(outcome: str) -> None:
    """Raises ValidationError."""
    if outcome not in ("done", "failed", "cancelled"):
        raise refuse("/outcome", "must be done, failed or cancelled")


def _milliseconds(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise refuse("/not_before", "must have an offset")
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
