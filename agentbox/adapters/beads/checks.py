"""Input checks of beads: the limits of B15, and text that can be stored."""

import re
import uuid
from dataclasses import replace
from datetime import datetime

from agentbox.adapters.beads.schedules import Schedule
from agentbox.adapters.runtime.input_checks import check_json, check_range, check_size, check_text
from agentbox.contracts import beads
from agentbox.contracts.beads import BeadSpec
from agentbox.core.records.wire import invalid_value

_ID_PREFIX = re.compile(r"[0-9a-f-]{1,36}")


def check_spec(spec: BeadSpec) -> BeadSpec:
    """Return the spec with times truncated to milliseconds. Raises ValidationError or
    ValueTooLarge."""
    check_text(spec.title, "/title", max_length=beads.MAX_TITLE)
    check_text(spec.creator, "/creator", max_length=beads.MAX_TITLE)
    check_size(len(check_text(spec.body, "/body").encode()), "/body", beads.MAX_DOCUMENT)
    check_range(spec.priority, "/priority", beads.PRIORITY)
    check_range(spec.max_attempts, "/max_attempts", beads.ATTEMPTS)
    check_tags(spec.tags)
    check_json(spec.data, "/data")
    if spec.dedup_key is not None:
        check_text(spec.dedup_key, "/dedup_key", max_length=beads.MAX_TITLE)
    if spec.every is not None:
        Schedule.parse(spec.every)
    if spec.overlap not in ("skip", "queue"):
        raise invalid_value("/overlap", "must be skip or queue")
    return replace(spec, not_before=_truncate_to_ms(spec.not_before))


def check_tags(tags: tuple[str, ...]) -> None:
    """Raises ValidationError."""
    if len(tags) > beads.MAX_TAGS:
        raise invalid_value("/tags", f"has {len(tags)} items, the maximum is {beads.MAX_TAGS}")
    for index, tag in enumerate(tags):
        check_text(tag, f"/tags/{index}", max_length=beads.MAX_TAG)


def id_bounds(prefix: str) -> tuple[str, str]:
    """The ids with this prefix are from the first text on and before the second. Raises
    ValidationError."""
    if not _ID_PREFIX.fullmatch(prefix):
        raise invalid_value("/id_prefix", "must be 1 to 36 of 0-9, a-f and -")
    return prefix, f"{prefix}g"  # no id has a character above f


def check_lease(lease_id: str, lease_s: int | None = None) -> None:
    """Raises ValidationError for an id that is not a UUID, or a duration out of range."""
    try:
        uuid.UUID(lease_id)
    except (ValueError, AttributeError, TypeError):
        raise invalid_value("/lease_id", "must be a UUID") from None
    if lease_s is not None:
        check_range(lease_s, "/lease_s", beads.LEASE_SECONDS)


def check_release(delay_s: int, note: str) -> None:
    """Raises ValidationError or ValueTooLarge."""
    check_range(delay_s, "/delay_s", beads.DELAY_SECONDS)
    check_note(note)


def check_note(note: str) -> None:
    """Raises ValidationError or ValueTooLarge."""
    check_size(len(check_text(note, "/note").encode()), "/note", beads.MAX_DOCUMENT)


def check_outcome(outcome: str) -> None:
    """Raises ValidationError."""
    if outcome not in ("done", "failed", "cancelled"):
        raise invalid_value("/outcome", "must be done, failed or cancelled")


def _truncate_to_ms(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise invalid_value("/not_before", "must have an offset")
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
