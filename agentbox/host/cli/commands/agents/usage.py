"""`agentbox usage`: tokens and cost of model calls."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from agentbox.core import clock
from agentbox.core.visible_text import escape_invisible
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize

if TYPE_CHECKING:
    from agentbox.contracts.usage import ModelUsage

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command(name="usage")
@click.option(
    "--by",
    type=click.Choice(("agent", "task", "session", "model", "day")),
    default="agent",
    help="What the rows are (default: agent).",
)
@click.option(
    "--since",
    default="",
    metavar="TIME",
    help="Only calls from this time on: RFC 3339, or an age like 90m, 24h, 7d, 4w.",
)
@click.option("--limit", type=click.IntRange(1, 1000), default=100, help="Rows (default: 100).")
@click.pass_obj
def command(cli: CliContext, by: str, since: str, limit: int) -> None:
    """Show tokens and cost of model calls.

    Cost is in the currency of [cost], by the prices of the manifest; "-" where no price matched.
    """
    start = _time(since)
    with cli.client() as client:
        report = client.usage.report(by=by, since=start, limit=limit)
    cli.out.document(report.to_wire())
    cli.out.line(_line("", by, "calls", "input", "output", "cached", "cost"))
    for row in report.items:
        cli.out.line(_usage_line(row, escape_invisible(row.key) or "-"))
    for total in report.total:
        cli.out.line(_usage_line(total, "total"))
    if not report.complete:
        cli.out.line("more rows exist: raise --limit")
    if estimated := sum(total.estimated for total in report.total):
        cli.out.line(f"{pluralize(estimated, 'call')} charged by an estimate (~)")


def _usage_line(usage: ModelUsage, key: str) -> str:
    from agentbox.policy.cost import to_decimal

    cost = "-"
    if usage.cost_micros is not None:
        cost = f"{to_decimal(usage.cost_micros)} {usage.currency}"
    return _line(
        "~" if usage.estimated else "",
        key,
        usage.calls,
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        f"{cost} + {usage.unpriced} without a price" if usage.unpriced else cost,
    )


def _line(mark: str, key: str, *numbers: object) -> str:
    calls, read, written, cached, cost = numbers
    return f"{key[:60]:<38} {calls:>7} {read:>11} {written:>11} {cached:>11}  {mark}{cost}"


def _time(text: str) -> str | None:
    """Raises UsageError."""
    if not text:
        return None
    if text[:-1].isascii() and text[:-1].isdigit() and len(text) < 8 and text[-1] in _UNITS:
        return clock.to_wire(clock.now() - timedelta(**{_UNITS[text[-1]]: int(text[:-1])}))
    try:
        return clock.to_wire(clock.from_wire(text))
    except (ValueError, OverflowError):
        raise click.UsageError(
            f"cannot read --since {text}: give a time like 2026-11-27T14:00:00Z, or an age like 7d"
        ) from None
