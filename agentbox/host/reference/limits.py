"""docs/limits.md, from the registry. `python -m agentbox.host.reference.limits` writes it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentbox.policy.limits.registry import LIMITS, REARM_BELOW, WARN_AT, Limit

TARGET: Final = Path(__file__).parents[3] / "docs/limits.md"
COMMAND: Final = "python -m agentbox.host.reference.limits"
_INTRO: Final = f"""# Limits

<!-- Generated from agentbox/policy/limits/ by `{COMMAND}`. Do not edit. -->

The limits of one agent, what enforces them, and with which delay. Keys are those of agentbox.toml;
`agents.<name>.limits.*` sets a limit for one agent. Crossing {WARN_AT:.0%} is an event
`limit.warning`, once until the use was below {REARM_BELOW:.0%}; ending an agent at a limit is an
event `limit.breached`; a request beyond one is rejected with `QuotaExceeded`. All three have
`limit`, `observed`, `cap` and `config_path`. `agentbox_limit_breached_total{{limit}}` and
`agentbox_limit_warning_total{{limit}}` count them. `GET /v1/agents/{{id}}` has, under `limits`,
each cap and the maximum observed; null if it is not monitored. The last column is the test below
`tests/unit` in which the limit is reached while another agent is not affected.

| Limit | Unit | Key | Held by | At the limit | Bound | Shown by |
|---|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    return _INTRO + "".join(f"| {' | '.join(_row(row))} |\n" for row in LIMITS.values())


def _row(row: Limit) -> Iterator[str]:
    yield f"`{row.name}`"
    yield row.unit
    yield f"`{row.config_path}`" if row.config_path else f"fixed: {row.fixed:,}"
    yield from (row.enforced_by, row.consequence, row.bound, f"`{row.tested_by}`")


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
