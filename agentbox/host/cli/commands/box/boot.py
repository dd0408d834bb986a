"""`agentbox boot`: duration of a boot by phase, and the history of boots."""

from __future__ import annotations

import json
from typing import Any

import click

from agentbox.box.seal.event_timeline import timeline_from_events
from agentbox.box.seal.explain import Explanation, Row, explain
from agentbox.box.supervision.boot_timeline import BootTimeline
from agentbox.client import BoxUnreachable
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.engines.registry import engine_by_name


@click.group(name="boot")
def command() -> None:
    """Inspect boots of this box: durations, and whether each shutdown was clean."""


@command.command(name="explain")
@click.option(
    "--boot", "boot_id", metavar="ID", default="", help="An earlier boot. [default: the last one]"
)
@click.pass_obj
def explain_command(cli: CliContext, boot_id: str) -> None:
    """Show each phase and program of a boot on a time line.

    Rows marked * are the critical path of the seal, back to the start of PID 1.
    """
    explanation = explain(_fetch_timeline(cli, boot_id))
    cli.out.document(explanation.to_json())
    for line in _format_explanation(explanation):
        cli.out.line(line)


@command.command(name="history")
@click.option(
    "--verify",
    is_flag=True,
    help="Check that each sentinel names its predecessor; exit 1 if not.",
)
@click.pass_obj
def history_command(cli: CliContext, verify: bool) -> int:
    """List the boots recorded on the state volume."""
    with cli.client() as client:
        report = client.boot()
    cli.out.document({"boots": list(report.history), "broken": list(report.broken)})
    for boot in report.history:
        cli.out.line(_format_boot(boot))
    if not verify:
        return ExitCode.DONE
    for problem in report.broken:
        cli.out.error(problem)
    cli.out.line("the chain is complete" if not report.broken else "the chain is broken")
    return ExitCode.BAD if report.broken else ExitCode.DONE


def _fetch_timeline(cli: CliContext, boot_id: str) -> BootTimeline:
    """Fetches the timeline from the box; for the last boot falls back to its log."""
    try:
        with cli.client() as client:
            report = client.call("boot", query={"boot_id": boot_id or None})
    except BoxUnreachable:
        if boot_id:
            raise
        report = {"timeline": None}
    if report["timeline"] is not None:
        return BootTimeline.from_json(report["timeline"])
    if not boot_id and (timeline := timeline_from_events(_logged_events(cli))):
        return timeline
    raise AgentboxError(
        f"cannot explain boot {boot_id or 'of this box'}: nothing is recorded",
        "List recorded boots with `agentbox boot history`.",
    )


def _logged_events(cli: CliContext) -> list[dict[str, Any]]:
    record = cli.running_record()
    lines = engine_by_name(record.engine).logs(record, follow=False, lines=None, since=None)
    return [json.loads(line) for line in lines if line.startswith('{"agentbox.stage"')]


def _format_explanation(explanation: Explanation) -> list[str]:
    header = f"{'':2}{'':<8} {'':<16} {'start':>9} {'end':>9} {'budget':>9}"
    chain = [f"  {link.ms:>8.1f} ms  {link.name}" for link in explanation.chain]
    return [
        f"boot {explanation.boot_id}",
        header,
        *(_format_row(row) for row in explanation.rows),
        "",
        *chain,
        "",
        explanation.sentence,
    ]


def _format_row(row: Row) -> str:
    end = "never" if row.end_ms is None else f"{row.end_ms:.1f}"
    budget = "" if row.budget_ms is None else f"{row.budget_ms} ms{'!' if row.slow else ''}"
    mark = "*" if row.critical else " "
    return (
        f"{mark} {row.kind:<8} {row.name:<16} {row.start_ms:>9.1f} {end:>9} {budget:>9}  "
        f"|{row.bar}|"
    )


def _format_boot(boot: Any) -> str:
    seconds = "not sealed" if boot["seconds"] is None else f"{boot['seconds']:.2f} s"
    sentinel = (boot["sentinel_sha256"] or "-")[:19]
    return (
        f"{boot['boot_id']}  {boot['started_at']}  {seconds:>10}  "
        f"{boot['shutdown'] or 'running':<8}  {sentinel}"
    )
