"""E701: backups are scheduled and nobody could read them, or credentials would be stored in clear
text.
"""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E701", "0.1"
TITLE = "backup that nobody, or anybody, could read"
REASON = """\
A snapshot is encrypted to its recipients: without any, none could be opened. Without encryption,
whoever reads the file has the secrets and identities of the box."""
READS = (
    "backup.engine",
    "backup.schedule",
    "backup.recipients",
    "backup.encrypt",
    "backup.include",
)
BAD = """
[backup]
schedule = "30 3 * * *"
"""
GOOD = f"""
[backup]
schedule = "30 3 * * *"
recipients = ["age1{"q" * 58}"]
"""
_CREDENTIALS = ("identities", "secrets")


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding; none with restic, which has its own encryption and a password (E707)."""
    if context["backup.engine"] == "restic":
        return
    if context["backup.encrypt"] == "none":
        if found := [part for part in _CREDENTIALS if part in context["backup.include"]]:
            yield context.finding(
                "backup.encrypt",
                message=f"{' and '.join(found)} would be stored in clear text",
                remedy='Set backup.encrypt = "age", or take them out of backup.include.',
                related=("backup.include",),
            )
    elif context["backup.schedule"] and not context["backup.recipients"]:
        yield context.finding(
            "backup.schedule",
            message="backups are scheduled and have no recipient: nobody could read them",
            remedy="Run `agentbox backup init`, or add a public key to backup.recipients.",
            related=("backup.recipients",),
        )
