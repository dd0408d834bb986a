"""Which suites there are, and the commands of each."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agentbox.settings import CHECKOUT

_TIMED_MARK: Final = "mark.timed"


@dataclass(frozen=True)
class Suite:
    """One part of the whole: commands run from the checkout, all of which must exit 0."""

    name: str
    folders: tuple[str, ...] = ()
    """Of tests: pytest runs them."""
    workers: int = 1
    """Processes of pytest; a file stays in one of them."""
    containers: bool = False
    """Whether its boxes are containers, whose names and ports are fixed: one such suite at a time."""
    timed: bool = False
    """Its tests are those with a bound of wall-clock time: it runs last and alone."""
    options: tuple[str, ...] = ()
    programs: tuple[tuple[str, ...], ...] = ()
    """Beside pytest: words after the name of a program of this environment."""

    def commands(self) -> list[list[str]]:
        """Whole command lines."""
        programs = [[str(Path(sys.executable).with_name(name)), *words] for name, *words in self.programs]
        if not self.folders:
            return programs
        selected = ["-m", "timed" if self.timed else "not timed"]
        spread = ["-n", str(self.workers), "--dist", "loadfile"] if self.workers > 1 else []
        return [*programs, [sys.executable, "-m", "pytest", "-q", *selected, *spread, *self.folders, *self.options]]


SUITES = (
    Suite(
        "lint",
        programs=(
            ("python", "-m", "ruff", "check", "."),
            ("python", "-m", "ruff", "format", "--check", "."),
            ("python", "-m", "mypy", "agentbox"),
            ("lint-imports",),
        ),
    ),
    Suite("contract", ("tests/contract", "tests/mesh"), workers=2),
    Suite("unit", ("tests/unit", "tests/rules", "tests/golden", "tests/meta", "tests/api"), workers=2),
    Suite("nix", ("tests/nix",), containers=True),
    Suite("runtime", ("tests/runtime-contract",), containers=True),
    Suite("e2e", ("tests/e2e",), containers=True),
    Suite("features", ("tests/features",), containers=True),
    Suite("stories", ("tests/stories",)),
)


def timed_suite(chosen: Iterable[Suite]) -> Suite | None:
    """The tests with a bound of wall-clock time of these suites; None when they have none."""
    suites = [suite for suite in chosen if suite.folders]
    files = tuple(
        str(path.relative_to(CHECKOUT))
        for suite in suites
        for folder in suite.folders
        for path in sorted((CHECKOUT / folder).rglob("test_*.py"))
        if _TIMED_MARK in path.read_text()
    )
    if not files:
        return None
    return Suite("timed", files, containers=any(suite.containers for suite in suites), timed=True)


def with_options(suite: Suite, *more: str) -> Suite:
    """The same with more words for pytest."""
    return replace(suite, options=(*suite.options, *more)) if suite.folders else suite


def lanes(chosen: Iterable[Suite]) -> list[list[Suite]]:
    """What may run beside each other, each in its order: containers are one lane, everything else the other."""
    suites = list(chosen)
    split = [[suite for suite in suites if suite.containers is which] for which in (True, False)]
    return [lane for lane in split if lane]
