"""Backups and snapshots as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentbox.core import clock
from agentbox.core.errors import ExitCode
from agentbox.host.cli.output import pluralize
from agentbox.host.generations.counted_rows import ROWS

if TYPE_CHECKING:
    from agentbox.backup.repository import Fault
    from agentbox.contracts.backups import Backup, Snapshot
    from agentbox.host.cli.output import Output
    from agentbox.host.cli.stages.restore_rehearsal import Rehearsed


def format_backup(backup: Backup) -> str:
    """`ID  TIME  SIZE  STATE  TAG`, and what is missing."""
    state = backup.state
    if backup.state == "created":
        state_text = "verified" if backup.verified_at else "not verified"
    else:
        state_text = f"{state} {backup.reason}".rstrip()
    return _line(backup, backup.size, state_text)


def format_head(head: Snapshot) -> str:
    """The same for a head."""
    return _line(head, head.size, "not encrypted" if head.encrypt == "none" else head.encrypt)


def snapshot_row(head: Snapshot) -> dict[str, Any]:
    """The head without its members."""
    wire = head.to_wire()
    wire["members"] = len(head.members)
    return wire


def report_faults(out: Output, subject: str, faults: Sequence[Fault]) -> int:
    """Prints each damaged file; returns the exit code."""
    out.document([{"file": fault.file, "reason": fault.reason} for fault in faults])
    for fault in faults:
        out.line(f"damaged: {fault}")
    if faults:
        return ExitCode.BAD
    out.line(f"sound: {subject}")
    return ExitCode.DONE


def report_rehearsal(out: Output, subject: str, rehearsed: Rehearsed) -> None:
    """What the throw-away box showed."""
    state = rehearsed.report.state
    rows = {} if state is None else {name: row.rows for name, row in state.stores.items()}
    counts = {names[1]: rows.get(path) or 0 for path, names in ROWS.items() if path in rows}
    seq = -1 if state is None else state.journal_seq
    document = {"snapshot": subject, "counts": counts, "journal_seq": seq, "faults": []}
    out.document({**document, "degraded": list(rehearsed.report.degraded)})
    listed = ", ".join(f"{count} {name}" for name, count in counts.items())
    out.line(f"sound: {subject}: a box of it was ready{f', with {listed}' if listed else ''}")


def _line(row: Backup | Snapshot, size: int, state: str) -> str:
    partial = f"  partial: {', '.join(row.partial)}" if row.partial else ""
    tag = f"  {row.tag}" if row.tag else ""
    return f"{row.id}  {clock.to_wire(row.time)}  {pluralize(size, 'byte')}  {state}{tag}{partial}"
