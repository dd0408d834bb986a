"""Reports as JSON data."""

from typing import Any

from agentbox.host.doctor.check_result import DoctorReport


def report_data(report: DoctorReport) -> dict[str, Any]:
    """The report as plain data; `fine` corresponds to exit code 0."""
    return {
        "name": report.name,
        "fine": not report.failed,
        "counts": report.counts,
        "failed": [result.name for result in report.failed],
        "rows": [row.to_wire() for row in report.results],
    }
