"""Memory: what the box may use against what this host has, and what of it is free now."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row

NAME = "memory"
TITLE = "memory for the box"
_TABLE = Path("/proc/meminfo")  # proc(5); in KiB
IDLE = 256 << 20  # the control plane needs 160 MiB (docs/architecture.md); an agent that does little fits beside it


def look(host: Host) -> Iterator[Row]:
    table = {line.split(":")[0]: int(line.split()[1]) << 10 for line in _TABLE.read_text(encoding="ascii").splitlines()}
    total, free, asked = table["MemTotal"], table["MemAvailable"], host.plan.resources.memory
    said = f"{free >> 20} MiB of {total >> 20} MiB are free, the box may use {asked >> 20} MiB"
    facts = {"total": total, "available": free, "asked": asked}
    if total < asked or free < IDLE:
        advice = "Lower resources.memory in the manifest, or end something else on this host."
        yield Row(check=NAME, state="bad" if free < IDLE else "warning", said=said, advice=advice, facts=facts)
    elif free < asked and not host.running:
        advice = "A box whose agents use all that they may would be the kernel's first choice to end."
        yield Row(check=NAME, state="warning", said=said, advice=advice, facts=facts)
    else:
        yield Row(check=NAME, state="good", said=said, facts=facts)
