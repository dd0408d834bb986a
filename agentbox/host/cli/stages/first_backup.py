"""The backup before a change of the whole box."""

from __future__ import annotations

import time
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext

_POLL_SECONDS: Final = 0.25


def backups_are_set_up(cli: CliContext) -> bool:
    """Whether the manifest says who can read a backup, or that all can."""
    table = cli.load_manifest().usable.backup
    return table.engine == "restic" or table.encrypt != "age" or bool(table.recipients)


def make_backup(cli: CliContext, change: str) -> str:
    """Makes a backup with the tag `pre-<change>` and returns its id. Raises AgentboxError: nothing
    has changed then.
    """
    from agentbox.host.cli.commands.data.backup_sources import create_backup

    with cli.out.stage("backup") as stage, cli.client() as client:
        backup = create_backup(client, f"pre-{change}")
        while backup.state not in ("created", "failed"):
            time.sleep(_POLL_SECONDS)
            backup = client.backups.get(backup.id)
        if backup.state == "failed":
            raise AgentboxError(
                f"cannot make the backup before the {change}: {backup.reason}",
                f"Fix that, or leave the backup out: agentbox {change} --no-backup.",
                exit_code=ExitCode.PREREQUISITE,
            )
        stage.result = backup.id
    return backup.id
