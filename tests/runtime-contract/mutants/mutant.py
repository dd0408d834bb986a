"""A mutant: a box broken in one place, and the predicate that must detect it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.agents import wait_served
from harness.container import DockerBox


@dataclass(frozen=True)
class Mutant:
    """`options` create the broken box; `prepare` brings it to where the predicate expects it;
    `sees` must fail with an AssertionError whose text matches `says`: it failed for the planted
    reason."""

    rc: str
    name: str
    sees: Callable[[DockerBox], None]
    says: str
    options: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[DockerBox], object] = lambda _box: None

    def __str__(self) -> str:
        return f"{self.rc}-{self.name}"


def without(line: str) -> Callable[[str], str]:
    """An edit of the rendered compose file that drops the line or list entry that is this text."""

    def edit(text: str) -> str:
        lines = text.splitlines(keepends=True)
        kept = [each for each in lines if each.strip() != line]
        assert len(lines) - len(kept) == 1, (
            f"{line!r} stands {len(lines) - len(kept)} times in the compose file"
        )
        return "".join(kept)

    return edit


def instead(old: str, new: str) -> Callable[[str], str]:
    """An edit of the rendered compose file."""

    def edit(text: str) -> str:
        assert text.count(old) >= 1, f"{old!r} is not in the compose file"
        return text.replace(old, new)

    return edit


def start(box: DockerBox) -> None:
    """Just runs it."""
    box.start()


def create(box: DockerBox) -> None:
    """Creates the container; enough for what the engine reports about it."""
    box.create()


def ready(box: DockerBox) -> None:
    """Runs it until it reports ready."""
    box.start()
    box.wait_ready()


def served(box: DockerBox) -> None:
    """Runs it until its slots work, which does not involve its sandbox."""
    box.start()
    wait_served(box)
