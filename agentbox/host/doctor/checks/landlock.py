"""Landlock: which version this kernel has, and what it therefore cannot hold."""

from collections.abc import Iterator

from agentbox.core.linux import landlock
from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row, State
from agentbox.sandbox import confinement

NAME = "landlock"
TITLE = "Landlock, which holds an agent's files and signals"


def look(host: Host) -> Iterator[Row]:
    abi = landlock.abi()
    lacking = confinement.missing(abi)
    if not lacking:
        yield Row(check=NAME, state="good", said=f"ABI {abi}", facts={"abi": abi})
        return
    allowed = set(host.plan.limits.get("allow_degraded", ()))
    advice = "Boot a kernel with Landlock (6.12 or later, `lsm=landlock,…`)" + (
        "" if abi else "; this one has none, or it was not switched on at boot"
    )
    for name, why in lacking.items():
        state: State = "warning" if name in allowed else "bad"
        yield Row(check=NAME, subject=name, state=state, said=f"{name} cannot be held: {why}", advice=f"{advice}.", facts={"abi": abi})  # fmt: skip
