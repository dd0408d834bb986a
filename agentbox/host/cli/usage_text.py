"""What a run used, in one line each."""

from collections.abc import Mapping
from typing import Any

from agentbox.host.cli.output import pluralize

_MIB = 1 << 20


def models_line(usage: Mapping[str, Any]) -> str:
    """Of a ModelUsage on the wire: `2 calls, 310 tokens in, 40 out, 0.0021 USD`."""
    from agentbox.policy.cost import to_decimal

    cost = usage["cost_micros"]
    parts = [
        pluralize(usage["calls"], "call"),
        f"{usage['input_tokens']} tokens in",
        f"{usage['output_tokens']} out",
        "no price" if cost is None else f"{to_decimal(cost)} {usage['currency']}",
    ]
    if usage["unpriced"] and cost is not None:
        parts.append(f"{usage['unpriced']} without a price")
    if usage["estimated"]:
        parts.append(f"{usage['estimated']} estimated")
    return ", ".join(parts)


def run_line(usage: Mapping[str, Any]) -> str:
    """Of `usage` of an agent: `wall 3.1 s, CPU 1.2 s, memory 40 MiB`, as far as it was measured."""
    wall, cpu, memory = (usage.get(name) for name in ("wall_seconds", "cpu_seconds", "peak_memory"))
    parts = (
        "" if wall is None else f"wall {wall:.1f} s",
        "" if cpu is None else f"CPU {cpu:.1f} s",
        "" if memory is None else f"memory {memory / _MIB:.0f} MiB",
    )
    return ", ".join(part for part in parts if part)
