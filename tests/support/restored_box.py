"""Whether a box runs on the state that a restore made, as the stage `compare` sees it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.stages.restored_checks import require_restored
from agentbox.restoring.restore import RestoredState
from support.api_box import TOKEN, ApiBox


def shows_what_was_restored(box: ApiBox, made: RestoredState) -> None:
    """The box runs on that state; on no state with another record, or with a bead or object more."""
    cli: Any = SimpleNamespace(token=lambda _record: TOKEN)
    record: Any = SimpleNamespace(api_url=box.url)
    found = require_restored(cli, record, made, has_journal=True)
    assert found == f"record {made.journal_seq}, rows of {len(made.rows)} stores"
    assert made.rows["pods/index.db"] == made.objects
    others = [replace(made, journal_hash="0" * 64), replace(made, journal_seq=made.seq + 10**6)]
    others += [
        replace(made, rows={**made.rows, name: made.rows[name] + 1})
        for name in ("beads/beads.db", "pods/index.db")
    ]
    for other in others:
        with pytest.raises(AgentboxError, match="it does not run on the restored state: "):
            require_restored(cli, record, other, has_journal=True)
