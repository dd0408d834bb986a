"""W601: a key made dead by a choice."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import View
from agentbox.manifest.rules.document._dead import dead_keys
from agentbox.manifest.toml_text import spell

CODE, SINCE = "W601", "0.1"
TITLE = "key that nothing reads"
WHY = """A key that the chosen implementation or mode does not read looks as if it did something. It does nothing until
the choice changes."""
READS = ("**",)
BAD = """
[adapters.memory]
use = "local-sqlite"
pool_size = 4
"""
GOOD = """
[adapters.memory]
use = "external-pg"
dsn_env = "MEMORY_DSN"
pool_size = 4
"""
LAST = True


def check(view: View) -> Iterator[Finding]:
    """One finding a key that no error names."""
    for key, failed in dead_keys(view):
        choices = [condition for condition in failed if not condition.is_switch]
        if choices and key not in view.errors:
            why = choices[0]
            yield view.finding(
                key,
                message=f"nothing reads {key} while {why.key} is {spell(view[why.key])}",
                remedy=f"Remove {key}, or change {why.key}.",
                related=(why.key,),
            )
