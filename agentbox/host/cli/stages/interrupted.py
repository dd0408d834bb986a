"""Finishes an upgrade that was interrupted, for commands that do not change the box themselves."""

from __future__ import annotations

import json

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext


def finish_interrupted(cli: CliContext) -> None:
    """Does nothing if no trial is on disk, or if the command that runs it is alive."""
    index = cli.state().directory / "generations" / "index.json"
    if not index.exists() or not json.loads(index.read_bytes()).get("trial"):
        return
    from agentbox.host.cli.stages.trial_end import finish_trial

    try:
        with cli.state().exclusive_lock():
            finish_trial(cli)
    except AgentboxError as error:
        if error.exit_code is not ExitCode.BUSY:
            raise
