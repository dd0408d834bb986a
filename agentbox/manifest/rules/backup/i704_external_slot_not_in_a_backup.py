"""I704: a slot is in PostgreSQL, and backups leave it out."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "I704", "0.1"
TITLE = "slot that its owner backs up"
REASON = """\
A database that several boxes share is backed up by its owner. A snapshot of this box then has no
data of the slot."""
_SLOTS = ("beads", "memory")
READS = (
    "backup.external",
    "backup.schedule",
    "backup.include",
    "adapters.beads.use",
    "adapters.memory.use",
)
BAD = f"""
[backup]
schedule = "30 3 * * *"
recipients = ["age1{"q" * 58}"]
[adapters.beads]
use = "external-pg"
dsn_env = "BEADS_DSN"
"""
GOOD = f"""
[backup]
schedule = "30 3 * * *"
recipients = ["age1{"q" * 58}"]
external = "dump"
[adapters.beads]
use = "external-pg"
dsn_env = "BEADS_DSN"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding for each slot, where backups are scheduled."""
    if not context["backup.schedule"] or context["backup.external"] == "dump":
        return
    for slot in _SLOTS:
        key = f"adapters.{slot}.use"
        if context[key] == "external-pg" and slot in context["backup.include"]:
            yield context.finding(
                key,
                message=f"{slot} is in PostgreSQL, and backups of this box leave it out",
                remedy='Its owner backs the database up; or set backup.external = "dump".',
                related=("backup.external",),
            )
