"""Which suites there are, and the commands of each."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agentbox.core.paths import CHECKOUT

# Of the runtime contract: what builds, locks and reads images, and has no box.
_BUILDS: Final = tuple(
    f"tests/runtime-contract/test_rc_{name}.py"
    for name in ("022_image_is_reproducible", "023_sbom_covers_the_image", "030_lock_and_fetch")
)
_WITHOUT_BUILDS: Final = tuple(f"--ignore={path}" for path in _BUILDS)
_TIMED_MARK: Final = "mark.timed"


@dataclass(frozen=True)
class Suite:
    """One part of the whole: commands run from the checkout, all of which must exit 0."""

    name: str
    folders: tuple[str, ...] = ()
    """Of tests: pytest runs them."""
    workers: int = 1
    """Processes of pytest; a file stays in one of them."""
    lane: str = "processes"
    """Suites of a lane run one after the other, lanes beside each other: boxes of one lane may share names and ports."""
    containers: bool = False
    """Whether it needs the container engine and Nix."""
    after: str = ""
    """The suite that must have ended, if it was chosen."""
    timed: bool = False
    """Its tests are those with a bound of wall-clock time: it runs after all others, beside none."""
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
            ("python", "-m", "mypy", "agentbox", "tools"),
            ("lint-imports",),
        ),
    ),
    Suite("contract", ("tests/contract", "tests/mesh"), workers=2),
    Suite("unit", ("tests/unit", "tests/rules", "tests/golden", "tests/meta", "tests/api"), workers=3),
    Suite("images", programs=(("python", "tests/tools/build_images.py"),), lane="boxes", containers=True),
    Suite("runtime", ("tests/runtime-contract",), lane="boxes", containers=True, options=_WITHOUT_BUILDS),
    Suite("features", ("tests/features",), lane="boxes", containers=True),
    Suite("nix", ("tests/nix", *_BUILDS), lane="commands", containers=True, after="images"),
    Suite("e2e", ("tests/e2e",), lane="commands", containers=True, after="images"),
    Suite("stories", ("tests/stories",), lane="commands"),
)


def timed_suites(chosen: Iterable[Suite]) -> list[Suite]:
    """The tests with a bound of wall-clock time of these suites. Most of them wait, so that two cores take two at a time;
    those in containers measure the machine, and are alone."""
    found: dict[bool, list[str]] = {False: [], True: []}
    for suite in chosen:
        files = [path for folder in suite.folders for path in _test_files(CHECKOUT / folder)]
        found[suite.containers] += [
            str(path.relative_to(CHECKOUT)) for path in files if _TIMED_MARK in path.read_text()
        ]
    two, alone = (tuple(dict.fromkeys(files)) for files in found.values())
    return [
        *([Suite("timed", two, workers=2, timed=True)] if two else []),
        *([Suite("timed-box", alone, containers=True, timed=True)] if alone else []),
    ]


def _test_files(place: Path) -> list[Path]:
    return sorted(place.rglob("test_*.py")) if place.is_dir() else [place]


def with_options(suite: Suite, *more: str) -> Suite:
    """The same with more words for pytest."""
    return replace(suite, options=(*suite.options, *more)) if suite.folders else suite


def lanes(chosen: Iterable[Suite]) -> list[list[Suite]]:
    """What may run beside each other, each in its order."""
    found: dict[str, list[Suite]] = {}
    for suite in chosen:
        found.setdefault(suite.lane, []).append(suite)
    return list(found.values())
