"""Kernel version and architecture."""

import os
from collections.abc import Iterator

from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.doctor.version_numbers import format_version, meets_minimum
from agentbox.sandbox.seccomp.syscalls import MACHINES

NAME = "kernel"
TITLE = "a kernel with all confinement features"
MIN_VERSION = (6, 12)  # Landlock ABI 6: signals and abstract sockets


def run_check(_host: CheckContext) -> Iterator[CheckResult]:
    system = os.uname()
    if system.machine not in MACHINES:
        yield CheckResult(
            check=NAME,
            state="bad",
            message=f"Linux {system.release} on {system.machine}",
            advice=f"Use a supported machine: {' or '.join(MACHINES)}.",
        )
        return
    ok = meets_minimum(system.release, MIN_VERSION)
    yield CheckResult(
        check=NAME,
        state="good" if ok else "bad",
        message=f"Linux {system.release} on {system.machine}",
        advice=""
        if ok
        else f"Upgrade the kernel to {format_version(MIN_VERSION)} or later; agents do not start "
        "on this one unless"
        " [limits] allow_degraded permits it.",
    )
