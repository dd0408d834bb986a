"""Landlock: version of this kernel and missing restrictions."""

from collections.abc import Iterator

from agentbox.core.linux import landlock
from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult, State
from agentbox.sandbox import confinement

NAME = "landlock"
TITLE = "Landlock, which restricts files and signals of agents"


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    abi = landlock.abi()
    missing = confinement.missing_mechanisms(abi)
    if not missing:
        yield CheckResult(check=NAME, state="good", message=f"ABI {abi}", facts={"abi": abi})
        return
    allowed = set(host.plan.limits.allow_degraded)
    advice = "Boot a kernel with Landlock (6.12 or later, `lsm=landlock,…`)" + (
        "" if abi else "; this one lacks it or did not enable it at boot"
    )
    for name, reason in missing.items():
        state: State = "warning" if name in allowed else "bad"
        yield CheckResult(
            check=NAME,
            subject=name,
            state=state,
            message=f"{name} cannot be restricted: {reason}",
            advice=f"{advice}.",
            facts={"abi": abi},
        )
