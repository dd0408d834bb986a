"""The program `backup`: off until the API starts it, and what it may use. It reads what was staged,
which agents wrote, so it is confined to the folder of snapshots and has no network.
"""

from typing import Final

from agentbox.core.paths import Paths
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
