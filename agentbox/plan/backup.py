"""The program `backup`: off until the API starts it, and what it may use. It reads what was staged,
which agents wrote, so it is confined to the folder of snapshots. It has no network but to the port
of the host of a remote repository, and to servers of names.
"""

from dataclasses import replace
from typing import Final

from agentbox.core.paths import Paths
from agentbox.manifest.named_types import parse_address
from agentbox.manifest.tables.backup import BackupTable
from agentbox.plan.features.rulesets import secret_paths
from agentbox.plan.model import Program, ReadySignal, Ruleset
from agentbox.plan.names import BACKUP, ONCE_GROUP

_BOX: Final = Paths()

PROGRAM: Final = Program(
    name=BACKUP,
    priority=98,
    argv=(str(_BOX.python), "-I", "-m", "agentbox.backup"),
    required=False,
    ready=ReadySignal(by="exit0"),
    stop_seconds=1,
    group=ONCE_GROUP,
    once=True,
    autostart=False,
)
RULESET: Final = Ruleset(folders=(str(_BOX.backups), str(_BOX.backup_run)))
_DNS: Final = 53


def ruleset(table: BackupTable) -> Ruleset:
    """With restic also its secrets, and the port of a remote repository."""
    if table.engine != "restic":
        return RULESET
    names = (table.password_env, table.ssh_key_env, *table.credentials)
    reads = secret_paths(name for name in names if name)
    address = parse_address(table.repository) if table.repository else None
    if address is None:
        return replace(RULESET, reads=reads)
    return replace(RULESET, reads=reads, network=True, connects=(_DNS, address.port))
