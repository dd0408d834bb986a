"""Reports of suites: table, JSON document and durations of files, from pytest's reports."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from agentbox.core.paths import CHECKOUT

HEADINGS = f"{'stage':<10} {'result':<8} {'minutes':>8} {'passed':>7} {'failed':>7} {'skipped':>8}"


@dataclass(frozen=True)
class Case:
    """One test: file, name, duration with fixtures, and reason of a failure or skip."""

    file: str
    name: str
    seconds: float
    failed: str = ""
    skipped: str = ""

    @property
    def test_id(self) -> str:
        return f"{self.file}::{self.name}"


@dataclass(frozen=True)
class SuiteResult:
    """Result of a suite."""

    suite: str
    passed: bool
    seconds: float
    cases: list[Case] = field(default_factory=list)
    output: Path | None = None
    """Output of its programs, unless it went to the terminal."""

    @property
    def failed(self) -> list[str]:
        """Failed tests, each with the first line of the reason."""
        return [f"{case.test_id}: {case.failed}" for case in self.cases if case.failed]

    @property
    def skipped(self) -> list[str]:
        """Skipped tests, each with the reason."""
        return [
            f"{case.test_id}: {case.skipped}"
            for case in self.cases
            if case.skipped and not case.failed
        ]

    @property
    def table_row(self) -> str:
        """The row of the table."""
        outcome = "passed" if self.passed else "FAILED"
        counts = (
            len(self.cases) - len(self.failed) - len(self.skipped),
            len(self.failed),
            len(self.skipped),
        )
        numbers = counts if self.cases else ("-", "-", "-")
        return (
            f"{self.suite:<10} {outcome:<8} {self.seconds / 60:8.1f} {numbers[0]:>7} "
            f"{numbers[1]:>7} {numbers[2]:>8}"
        )

    def document(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "suite": self.suite,
            "passed": self.passed,
            "seconds": round(self.seconds, 1),
            "tests": len(self.cases),
            "failed": self.failed,
            "skipped": self.skipped,
            "slowest": [asdict(case) for case in slowest([self], 30)],
        }


def read_result(
    suite: str, codes: Sequence[int], seconds: float, report: Path, output: Path | None
) -> SuiteResult:
    """Builds the result from exit codes and, if present, pytest's report."""
    return SuiteResult(
        suite, not any(codes), seconds, _read_cases(report) if report.exists() else [], output
    )


def _read_cases(report: Path) -> list[Case]:
    """Reads the cases; a test whose body and fixture both failed is one case."""
    cases: dict[tuple[str, str], Case] = {}
    for element in ElementTree.parse(report).iter("testcase"):
        file, name = _locate_test(element)
        previous = cases.get((file, name))
        failed = next(
            (
                _first_line(problem)
                for kind in ("failure", "error")
                for problem in element.findall(kind)
            ),
            "",
        )
        skipped = next((_first_line(fault) for fault in element.findall("skipped")), "")
        cases[file, name] = Case(
            file,
            name,
            float(element.get("time", 0)) + (previous.seconds if previous else 0),
            (previous.failed if previous else "") or failed,
            (previous.skipped if previous else "") or skipped,
        )
    return list(cases.values())


def _locate_test(element: ElementTree.Element) -> tuple[str, str]:
    """The file and the rest of the test's id. For an inherited test pytest reports the defining
    file; the class name gives the actual one."""
    parts, name = element.get("classname", "").split("."), element.get("name", "")
    for count in range(len(parts), 0, -1):
        file = "/".join(parts[:count]) + ".py"
        if (CHECKOUT / file).is_file():
            return file, "::".join([*parts[count:], name])
    return element.get("file", ""), name


def _first_line(element: ElementTree.Element) -> str:
    return (element.get("message") or "").partition("\n")[0] or element.tag


def slowest(results: Iterable[SuiteResult], number: int) -> list[Case]:
    """The slowest tests, including fixtures."""
    cases = (case for result in results for case in result.cases)
    return sorted(cases, key=lambda case: -case.seconds)[:number]


def file_durations(results: Iterable[SuiteResult]) -> dict[str, float]:
    """Test file -> seconds."""
    sums: defaultdict[str, float] = defaultdict(float)
    for result in results:
        for case in result.cases:
            sums[case.file] += case.seconds
    return {file: round(seconds, 1) for file, seconds in sorted(sums.items()) if seconds >= 0.05}


def write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


def stored_durations(path: Path) -> dict[str, float]:
    """The durations stored by an earlier run, if any."""
    stored: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    return stored
