"""Memory: the limit of the box compared with the total and free memory of this host."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult

NAME = "memory"
TITLE = "memory for the box"
_MEMINFO = Path("/proc/meminfo")  # proc(5); in KiB
MIN_FREE = 256 << 20  # the control plane needs 160 MiB (docs/architecture.md), plus a small agent


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    table = {
        line.split(":")[0]: int(line.split()[1]) << 10
        for line in _MEMINFO.read_text(encoding="ascii").splitlines()
    }
    total, free, requested = table["MemTotal"], table["MemAvailable"], host.plan.resources.memory
    message = (
        f"{free >> 20} MiB of {total >> 20} MiB are free, the box may use {requested >> 20} MiB"
    )
    facts = {"total": total, "available": free, "asked": requested}
    if total < requested or free < MIN_FREE:
        advice = "Lower resources.memory in the manifest, or stop other programs on this host."
        yield CheckResult(
            check=NAME,
            state="bad" if free < MIN_FREE else "warning",
            message=message,
            advice=advice,
            facts=facts,
        )
    elif free < requested and not host.running:
        advice = "Free some memory: the OOM killer may end a box whose agents use their limits."
        yield CheckResult(check=NAME, state="warning", message=message, advice=advice, facts=facts)
    else:
        yield CheckResult(check=NAME, state="good", message=message, facts=facts)
