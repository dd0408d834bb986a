"""E307: a credential of the box in the environment of an agent."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.tables.slots import SLOTS

_FIXED = (
    "api.token_env",
    "mesh.token_env",
    *(f"adapters.{slot}.token_env" for slot in SLOTS),
    "adapters.beads.dsn_env",
    "adapters.memory.dsn_env",
    "backup.password_env",
    "backup.ssh_key_env",
    "desktop.password_env",
    "sovereign_mesh.telegram_mirror.bot_token_env",
)

CODE, SINCE = "E307", "0.1"
TITLE = "agent is handed a credential"
REASON = """API keys stay in the gateway, which gives each agent its own token. In the environment a
key would be readable by everything that the agent downloads and runs."""
READS = (
    "agents",
    "agents.*.enabled",
    "agents.*.env",
    "mcp.servers",
    "mcp.servers.*.enabled",
    "mcp.servers.*.env",
    "backup.credentials",
    "providers",
    "providers.*.env_var",
    *_FIXED,
)
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
EACH = ("agents", "mcp.servers")


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per variable."""
    table = f"{context.table}.*"
    if not context[f"{table}.enabled"]:
        return
    owners = dict.fromkeys(context["backup.credentials"], "backup.credentials")
    owners |= {context[key]: key for key in _credential_keys(context) if context[key]}
    for name in context[f"{table}.env"]:
        if name in owners:
            yield context.finding(
                f"{table}.env",
                message=f"{context.entry} gets {name}, the credential of {owners[name]}",
                remedy=f"Drop it from {context.path(f'{table}.env')}; a secret of its own goes "
                f"into {context.path(f'{table}.secrets')}.",
                related=(owners[name],),
            )


def _credential_keys(context: RuleContext) -> tuple[str, ...]:
    return (*_FIXED, *(f"providers.{name}.env_var" for name in context.names("providers")))
