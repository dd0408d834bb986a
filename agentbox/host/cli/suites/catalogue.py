"""The test suites and their commands."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agentbox.core.paths import CHECKOUT

# Tests of the runtime contract that build, lock and read images and need no box.
_BUILD_TESTS: Final = tuple(
    f"tests/runtime-contract/test_rc_{name}.py"
    for name in ("022_image_is_reproducible", "023_sbom_covers_the_image", "030_lock_and_fetch")
)
_IGNORE_BUILD_TESTS: Final = tuple(f"--ignore={path}" for path in _BUILD_TESTS)
_TIMED_MARK: Final = "mark.timed"


@dataclass(frozen=True)
class Suite:
    """A suite: commands run from the checkout, all of which must exit 0."""

    name: str
    directories: tuple[str, ...] = ()
    """Test directories, run by pytest."""
    workers: int = 1
    """pytest processes; each file runs in one of them."""
    lane: str = "processes"
    """Suites of a lane run sequentially, lanes in parallel: boxes of a lane may share names and
    ports."""
    containers: bool = False
    """Whether it needs the container engine and Nix."""
    after: str = ""
    """The suite that must end first, if selected."""
    timed: bool = False
    """Tests with limits of wall-clock time: run last, in no parallel lane."""
    options: tuple[str, ...] = ()
    programs: tuple[tuple[str, ...], ...] = ()
    """Further commands: a program of this environment and its arguments."""

    def commands(self) -> list[list[str]]:
        """Complete command lines."""
        programs = [
            [str(Path(sys.executable).with_name(name)), *arguments]
            for name, *arguments in self.programs
        ]
        if not self.directories:
            return programs
        markers = ["-m", "timed" if self.timed else "not timed"]
        distribution = ["-n", str(self.workers), "--dist", "loadfile"] if self.workers > 1 else []
        return [
            *programs,
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                *markers,
                *distribution,
                *self.directories,
                *self.options,
            ],
        ]


SUITES = (
    Suite(
        "lint",
        programs=(
            ("python", "-m", "ruff", "check", "."),
            ("python", "-m", "ruff", "format", "--check", "."),
            ("python", "-m", "mypy", "agentbox", "tools", "testkit", "tests/support"),
            ("lint-imports",),
        ),
        lane="commands",  # beside the image build, for which the rest of the lane waits
    ),
    Suite("contract", ("tests/contract", "tests/mesh"), workers=2),
    Suite(
        "unit", ("tests/unit", "tests/rules", "tests/golden", "tests/meta", "tests/api"), workers=3
    ),
    Suite(
        "images",
        programs=(("python", "tests/tools/build_images.py"),),
        lane="boxes",
        containers=True,
    ),
    Suite(
        "runtime",
        ("tests/runtime-contract",),
        lane="boxes",
        containers=True,
        options=_IGNORE_BUILD_TESTS,
    ),
    Suite("features", ("tests/features",), lane="boxes", containers=True),
    Suite("nix", ("tests/nix", *_BUILD_TESTS), lane="commands", containers=True, after="images"),
    Suite("e2e", ("tests/e2e",), lane="commands", containers=True, after="images"),
    Suite("stories", ("tests/stories",), lane="commands"),
)


def timed_suites(selected: Iterable[Suite]) -> list[Suite]:
    """Suites of the tests with limits of wall-clock time. Most of them wait, so two run at a time;
    those in containers measure the machine and run alone."""
    files_by_kind: dict[bool, list[str]] = {False: [], True: []}
    for suite in selected:
        files = [
            path for directory in suite.directories for path in _test_files(CHECKOUT / directory)
        ]
        files_by_kind[suite.containers] += [
            str(path.relative_to(CHECKOUT)) for path in files if _TIMED_MARK in path.read_text()
        ]
    host_files, container_files = (tuple(dict.fromkeys(files)) for files in files_by_kind.values())
    return [
        *([Suite("timed", host_files, workers=2, timed=True)] if host_files else []),
        *(
            [Suite("timed-box", container_files, containers=True, timed=True)]
            if container_files
            else []
        ),
    ]


def _test_files(path: Path) -> list[Path]:
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


def with_options(suite: Suite, *options: str) -> Suite:
    """Returns the suite with more pytest options."""
    return replace(suite, options=(*suite.options, *options)) if suite.directories else suite


def lanes(selected: Iterable[Suite]) -> list[list[Suite]]:
    """Groups suites by lane, in order."""
    by_lane: dict[str, list[Suite]] = {}
    for suite in selected:
        by_lane.setdefault(suite.lane, []).append(suite)
    return list(by_lane.values())
