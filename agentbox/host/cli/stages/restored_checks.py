"""What a box must show after a restore: that it runs on the state that was made."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.trial_checks import TrialFailed, compare_state, hash_of_record

if TYPE_CHECKING:
    from agentbox.host.engines.state import BoxRecord
    from agentbox.restoring.restore import RestoredState


def require_restored(
    cli: CliContext, record: BoxRecord, made: RestoredState, *, has_journal: bool
) -> str:
    """Compares the ready box with the state that was made: the record `journal.restored` by number
    and hash, which no other state has, and the rows of its stores. Returns what was compared.
    Raises AgentboxError.
    """
    from agentbox.client import BoxClient

    noted = noted_of(made, has_journal=has_journal)
    with BoxClient(record.api_url, token=cli.token(record)) as client:
        try:
            compare_state(client.generation.show(), noted, partial(hash_of_record, client))
        except TrialFailed as failure:
            raise AgentboxError(
                f"it does not run on the restored state: {failure}",
                "`agentbox generations` names its volumes.",
            ) from failure
    journal = f"record {made.journal_seq}, " if noted["journal_seq"] != -1 else ""
    return f"{journal}rows of {len(made.rows)} stores"


def noted_of(made: RestoredState, *, has_journal: bool) -> dict[str, Any]:
    """What a box on that state must show, as an upgrade notes it."""
    return {
        "stores": {name: {"rows": rows} for name, rows in made.rows.items()},
        "journal_seq": made.journal_seq if has_journal else -1,
        "journal_hash": made.journal_hash,
    }
