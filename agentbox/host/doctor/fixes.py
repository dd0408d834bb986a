"""Applies fixes after confirmation."""

from collections.abc import Callable

from agentbox.core.errors import AgentboxError
from agentbox.host.doctor.check_result import CheckResult, DoctorReport, Fix

Confirm = Callable[[str], bool]
Log = Callable[[str], None]


def apply_fixes(report: DoctorReport, confirm: Confirm, log: Log) -> int:
    """Applies each confirmed fix; returns the number of applied ones."""
    applied = 0
    for result, fix in _available_fixes(report):
        if not confirm(f"{result.name}: {result.message}\n{fix.question}"):
            log(f"not fixed: {result.name}")
            continue
        try:
            log(f"{result.name}: {fix.apply()}")
            applied += 1
        except AgentboxError as error:
            log(f"{result.name}: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))
    return applied


def _available_fixes(report: DoctorReport) -> list[tuple[CheckResult, Fix]]:
    return [(result, result.fix) for result in report.results if result.fix is not None]
