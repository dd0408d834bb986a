"""Tables of a plan for tests: those of the shortest manifest, with changes."""

from dataclasses import replace
from functools import cache
from typing import Any

from agentbox.plan.backup_table import BackupPlan
from agentbox.plan.model import Plan
from agentbox.plan.tables import (
    AcpPlan,
    EgressPlan,
    LimitsPlan,
    McpPlan,
    MeshPlan,
    PrivacyPlan,
    SandboxesPlan,
)
from support.plans import plan_of

MIB = 1 << 20


@cache
def _default() -> Plan:
    return plan_of()


def limits(**changes: Any) -> LimitsPlan:
    """`[limits]`, with 1 GiB of memory."""
    return replace(_default().limits, **{"memory": 1024 * MIB, **changes})


def mesh(**changes: Any) -> MeshPlan:
    """`[mesh]`: standalone."""
    return replace(_default().mesh, **changes)


def privacy(**changes: Any) -> PrivacyPlan:
    """`[privacy]`, but without a policy: nothing is redacted."""
    return replace(_default().privacy, **{"policy": {}, **changes})


def sandboxes(**changes: Any) -> SandboxesPlan:
    """`[sandboxes]`."""
    return replace(_default().sandboxes, **changes)


def acp(**changes: Any) -> AcpPlan:
    """`[acp]`."""
    return replace(_default().acp, **changes)


def mcp(**changes: Any) -> McpPlan:
    """`[mcp]`: no servers."""
    return replace(_default().mcp, **changes)


def backup(**changes: Any) -> BackupPlan:
    """`[backup]`: nothing is scheduled."""
    return replace(_default().backup, **changes)


def reach(**changes: Any) -> EgressPlan:
    """`[egress]`: nothing is allowed."""
    return replace(_default().reach, **changes)
