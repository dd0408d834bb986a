"""E307: a credential of the box in the environment of an agent."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import View
from agentbox.manifest.tables.slots import SLOTS

_FIXED = (
    "api.token_env",
    "mesh.token_env",
    *(f"adapters.{slot}.token_env" for slot in SLOTS),
    "adapters.beads.dsn_env",
    "adapters.memory.dsn_env",
    "desktop.password_env",
    "sovereign_mesh.telegram_mirror.bot_token_env",
)

CODE, SINCE = "E307", "0.1"
TITLE = "agent is handed a credential"
WHY = """Keys stay in the gateway, which gives an agent a token of its own instead. Passed through the environment a key
would be in the hands of everything that the agent downloads."""
READS = ("agents", "agents.*.enabled", "agents.*.env", "providers", "providers.*.env_var", *_FIXED)
BAD = """
[providers.openai]
enabled = true
env_var = "OPENAI_API_KEY"
[agents.builder]
command = ["builder"]
env = ["OPENAI_API_KEY"]
"""
GOOD = """
[providers.openai]
enabled = true
env_var = "OPENAI_API_KEY"
[agents.builder]
command = ["builder"]
env = ["LANG"]
"""
EACH = "agents"


def check(view: View) -> Iterator[Finding]:
    """One finding a variable."""
    if not view["agents.*.enabled"]:
        return
    owners = {view[key]: key for key in _credential_keys(view) if view[key]}
    for name in view["agents.*.env"]:
        if name in owners:
            yield view.finding(
                "agents.*.env",
                message=f"{view.entry} is handed {name}, the credential of {owners[name]}",
                remedy=f"Drop it from agents.{view.entry}.env; a secret of the agent's own goes into agents.{view.entry}.secrets.",
                related=(owners[name],),
            )


def _credential_keys(view: View) -> tuple[str, ...]:
    return (*_FIXED, *(f"providers.{name}.env_var" for name in view.names("providers")))
