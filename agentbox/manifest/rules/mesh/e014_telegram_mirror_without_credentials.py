"""E014: the mirror cannot log in."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E014", "0.1"
TITLE = "Telegram mirror without credentials"
REASON = """The mirror needs the token of its bot and the id of the chat; the manifest names the
variables that contain them."""
READS = (
    "sovereign_mesh.telegram_mirror.enabled",
    "sovereign_mesh.telegram_mirror.bot_token_env",
    "sovereign_mesh.telegram_mirror.chat_id_env",
)
BAD = """
[sovereign_mesh.telegram_mirror]
enabled = true
chat_id_env = ""
"""
GOOD = """
[sovereign_mesh.telegram_mirror]
enabled = true
"""
ENVIRONMENT = True


_TABLE = "sovereign_mesh.telegram_mirror"


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per variable; values are checked only with an environment."""
    if not context[f"{_TABLE}.enabled"]:
        return
    for name, need in (
        ("bot_token_env", "the token of the bot"),
        ("chat_id_env", "the number of the chat"),
    ):
        key = f"{_TABLE}.{name}"
        if not context[key]:
            yield context.finding(
                key,
                message=f"the mirror is enabled, and nothing names {need}",
                remedy=f"Set {key} to the name of a variable.",
            )
        elif context.is_unset(context[key]):
            yield context.finding(
                key,
                message=f"the variable {context[key]} is not set; it must contain {need}",
                remedy=f"Set {context[key]} in .env beside the manifest or in the environment, or "
                f"name another in {key}.",
            )
