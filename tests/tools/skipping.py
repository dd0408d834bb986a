"""In suites whose tests must all run a skip is a failure, unless the test names what its subject
needs and the machine lacks. A suite's conftest calls `no_other_skip` where pytest makes a report;
such a test calls `machine_lacks`. The test command lists skipped tests with the reason at its end.
"""

from __future__ import annotations

from typing import NoReturn

import pytest

_DECLARED = "this machine lacks "


def machine_lacks(what: str) -> NoReturn:
    """Skips the running test, if its subject needs what this machine lacks: "AppArmor, which ...
    needs"."""
    pytest.skip(f"{_DECLARED}{what}")


def no_other_skip(report: pytest.TestReport, suite: str) -> None:
    """Turns every other skip into a failure."""
    if report.skipped and _DECLARED not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped in {suite}: {report.longrepr}"
