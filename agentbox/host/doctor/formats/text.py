"""Reports as text."""

from collections.abc import Iterator
from typing import Final

from agentbox.host.doctor.check_result import STATES, CheckResult, DoctorReport, State

_LABELS: Final[dict[State, str]] = {
    "good": "good",
    "note": "note",
    "warning": "warning",
    "unknown": "unknown",
    "bad": "BAD",
}


def render_text(report: DoctorReport) -> str:
    """A line per result with its advice below; failures are repeated at the end."""
    return "\n".join(
        [
            *_lines(report),
            "",
            _format_counts(report),
            *(f"FAILED  {result.name}: {result.message}" for result in report.failed),
        ]
    )


def _lines(report: DoctorReport) -> Iterator[str]:
    width = max((len(result.check) for result in report.results), default=0)
    for row in report.results:
        yield f"{_LABELS[row.state]:<8} {row.check:<{width}}  {row.message}{_format_controls(row)}"
        if row.advice:
            yield f"{'':<8} {'':<{width}}    -> {row.advice}"


def _format_controls(result: CheckResult) -> str:
    return f"  [{', '.join(result.controls)}]" if result.controls else ""


def _format_counts(report: DoctorReport) -> str:
    counts = report.counts
    return (
        ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
        or "nothing was checked"
    )
