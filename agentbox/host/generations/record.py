"""The record of one generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from agentbox.core.frozen import frozen
from agentbox.host.engines.state import BoxRecord, parse_record

TRIAL: Final = "trial"
GOOD: Final = "good"
BAD: Final = "bad"
SUPERSEDED: Final = "superseded"
VERDICTS: Final = (TRIAL, GOOD, BAD, SUPERSEDED)


@frozen
class Generation:
    """What ran and on what. `key` is the digest of the inputs: an `up` with equal ones continues
    the generation. `box` is the `BoxRecord` of its last start, `sources` the digest of the code
    that a process-engine box runs, `python` its environment. `volumes` gives the name of each
    volume that is not today's, by the name in the plan. `migrations` has the number of every store
    after its last good start. `copies` are rollback copies made before its start, `noted` what the
    stores held then. `before` is the generation that it was made in place of: after a rollback not
    the one with the number below; 0 if unknown.
    """

    number: int = 0
    before: int = 0
    release: str = ""
    engine: str = ""
    image_ref: str = ""
    image_id: str = ""
    image_digest: str = ""
    plan_digest: str = ""
    manifest_digest: str = ""
    lock_digest: str = ""
    key: str = ""
    sources: str = ""
    python: str = ""
    folder: str = ""
    volumes: Mapping[str, str] = field(default_factory=dict)
    migrations: Mapping[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    copies: list[dict[str, Any]] = field(default_factory=list)
    noted: Mapping[str, Any] = field(default_factory=dict)
    snapshot: str = ""
    by: str = ""
    at: str = ""
    confirmed: str = ""
    verdict: str = TRIAL
    reason: str = ""
    log: list[str] = field(default_factory=list)
    pinned: bool = False
    box: Mapping[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> BoxRecord | None:
        """The record of its last start; None if it never started, or is of an unknown form."""
        return parse_record(BoxRecord, dict(self.box)) if self.box else None

    def volume(self, name: str) -> str:
        """The volume that it has under that name of the plan."""
        return self.volumes.get(name, name)
