"""E002: a PostgreSQL slot without its connection string."""

import re
from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E002", "0.1"
TITLE = "PostgreSQL slot without its connection string"
REASON = """\
The connection string is a credential, so the manifest only names the variable or the file
that contains it. Without a name no connection is possible."""
READS = (
    "adapters.beads.use",
    "adapters.beads.dsn_env",
    "adapters.beads.dsn_file",
    "adapters.memory.use",
    "adapters.memory.dsn_env",
    "adapters.memory.dsn_file",
)
BAD = """
[adapters.memory]
use = "external-pg"
"""
GOOD = """
[adapters.memory]
use = "external-pg"
dsn_env = "MEMORY_DSN"
"""
ENVIRONMENT = True


_FORM = re.compile(r"postgres(ql)?://\S+|[a-z_]+\s*=\s*\S+.*", re.DOTALL)


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per slot; with the environment also for a variable without a valid connection
    string.
    """
    for slot in ("beads", "memory"):
        table = f"adapters.{slot}"
        if context[f"{table}.use"] != "external-pg" or context[f"{table}.dsn_file"]:
            continue
        name = context[f"{table}.dsn_env"]
        if not name:
            yield context.finding(
                f"{table}.use",
                message="the slot is external-pg and has no connection string",
                remedy=f"Set {table}.dsn_env to the name of a variable, or {table}.dsn_file to a "
                "file in the container.",
            )
        elif (reason := _reason(context, name)) is not None:
            yield context.finding(
                f"{table}.dsn_env",
                message=f"the variable {name} {reason}",
                remedy=f"Set {name} to a PostgreSQL URI or keyword string, in .env or the "
                "environment.",
            )


def _reason(context: RuleContext, name: str) -> str | None:
    if context.is_unset(name):
        return "is not set"
    value = context.variable(name)
    return (
        "does not contain a PostgreSQL connection string"
        if value and not _FORM.fullmatch(value.strip())
        else None
    )
