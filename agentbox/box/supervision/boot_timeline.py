"""The times of one boot: stored per boot on the state volume, read by `boot explain` and `GET
/v1/boot`.

Standard library only. All times are milliseconds since PID 1 started.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from agentbox.box.supervision.sentinel import (
    MAX_COPIES,
    broken_links,
    read_sentinel,
    sentinel_copies,
)
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.paths import Paths


@dataclass(frozen=True)
class PhaseSpan:
    id: str
    start_ms: float
    ms: float
    budget_ms: int


@dataclass(frozen=True)
class ProgramSpan:
    """`spawn_ms` is None for a program that supervisord never started, `ready_ms` for one that was
    never ready.
    """

    name: str
    required: bool
    spawn_ms: float | None
    ready_ms: float | None


@dataclass(frozen=True)
class BootFailure:
    phase: str
    reason: str


@dataclass(frozen=True)
class BootTimeline:
    """One boot. `exec_ms` is the start of supervisord, `sealed_ms` the time of the sentinel (None
    without one).
    """

    boot_id: str
    started_at: str
    plan_digest: str
    previous_shutdown: str
    phases: tuple[PhaseSpan, ...]
    programs: tuple[ProgramSpan, ...]
    exec_ms: float | None
    sealed_ms: float | None
    failure: BootFailure | None = None
    schema: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "BootTimeline":
        """Raises KeyError or TypeError for an invalid document."""
        return cls(
            **{
                **document,
                "phases": tuple(PhaseSpan(**row) for row in document["phases"]),
                "programs": tuple(ProgramSpan(**row) for row in document["programs"]),
                "failure": BootFailure(**document["failure"]) if document["failure"] else None,
            }
        )


def store_timeline(paths: Paths, timeline: BootTimeline) -> None:
    """Writes it next to the copies of the sentinels; the newest `MAX_COPIES` stay. Raises
    OSError.
    """
    paths.boot_timings.mkdir(parents=True, exist_ok=True)
    replace_json(paths.boot_timings / f"{timeline.boot_id}.json", timeline.to_json())
    for path in sorted(paths.boot_timings.glob("*.json"))[:-MAX_COPIES]:
        path.unlink()


def boot_timeline(paths: Paths, boot_id: str = "") -> BootTimeline | None:
    """The stored record of a boot, the newest without an id; None when the id is unknown."""
    stored = (
        {path.stem: path for path in sorted(paths.boot_timings.glob("*.json"))}
        if paths.boot_timings.is_dir()
        else {}
    )
    path = stored.get(boot_id) if boot_id else next(reversed(stored.values()), None)
    document = read_json(path) if path else None
    return BootTimeline.from_json(document) if document else None


@dataclass(frozen=True)
class PastBoot:
    """One line of `boot history`. `shutdown` is how this boot ended, None until the next boot."""

    boot_id: str
    started_at: str
    plan_digest: str
    seconds: float | None
    sentinel_sha256: str | None
    shutdown: str | None


def boot_history(paths: Paths) -> list[PastBoot]:
    """All stored boots, oldest first, sealed and failed."""
    if not paths.boot_timings.is_dir():
        return []
    sealed = {
        path.stem: sentinel_file.sha256
        for path in sentinel_copies(paths)
        if (sentinel_file := read_sentinel(path))
    }
    timelines = [
        BootTimeline.from_json(read_json(path) or {})
        for path in sorted(paths.boot_timings.glob("*.json"))
    ]
    shutdowns = [later.previous_shutdown for later in timelines[1:]]
    pairs = zip_longest(timelines, shutdowns)
    return [
        _past_boot(timeline, sealed.get(timeline.boot_id), shutdown) for timeline, shutdown in pairs
    ]


def _past_boot(timeline: BootTimeline, sentinel: str | None, shutdown: str | None) -> PastBoot:
    seconds = None if timeline.sealed_ms is None else round(timeline.sealed_ms / 1000, 3)
    return PastBoot(
        timeline.boot_id, timeline.started_at, timeline.plan_digest, seconds, sentinel, shutdown
    )


def boot_report(paths: Paths, boot_id: str = "") -> dict[str, Any]:
    """The response of `GET /v1/boot`: `timeline` of that boot (null when unknown; the newest
    without an id), `history` of all stored boots, and `broken`, a sentence for each broken link of
    the sentinel chain.
    """
    timeline = boot_timeline(paths, boot_id)
    return {
        "timeline": timeline.to_json() if timeline else None,
        "history": [asdict(boot) for boot in boot_history(paths)],
        "broken": list(broken_links(paths)),
    }
