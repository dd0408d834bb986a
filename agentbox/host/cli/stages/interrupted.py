"""Finishes an upgrade that was interrupted, for commands that do not change the box themselves."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext


def finish_interrupted(cli: CliContext) -> None:
    """Does nothing if no trial is on disk, if the generation was left as it is, or if the command
    that runs the trial is alive. Raises AgentboxError, also for a damaged index.
    """
    if not _trial(cli) or left_trial(cli):
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(cli.state().exclusive_lock())
        except AgentboxError as error:
            if error.exit_code is not ExitCode.BUSY:
                raise
            return
        if _trial(cli) and not left_trial(cli):
            from agentbox.host.cli.stages.trial_end import finish_trial

            finish_trial(cli)


def left_trial(cli: CliContext) -> dict[str, Any]:
    """The trial of a generation that was left as it is, held; empty if there is none."""
    if not (trial := _trial(cli)):
        return {}
    from agentbox.host.generations.trial_steps import LEFT

    return trial if trial.get("step") == LEFT else {}


def _trial(cli: CliContext) -> dict[str, Any]:
    """The store is imported only for what is unusual: `status` is typed often."""
    index = cli.state().directory / "generations" / "index.json"
    if not index.exists():
        return {}
    try:
        document = json.loads(index.read_bytes())
    except (OSError, ValueError):
        document = None
    if isinstance(document, dict) and document.get("trial", {}) == {}:
        return {}
    from agentbox.host.generations.store import GenerationStore

    return GenerationStore(cli.state()).trial()
