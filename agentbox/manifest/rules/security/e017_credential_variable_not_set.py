"""E017: a variable that must hold a credential is unset."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.rules.security._credentials import READS as _READS
from agentbox.manifest.rules.security._credentials import credentials

CODE, SINCE = "E017", "0.1"
TITLE = "credential variable is not set"
REASON = """The manifest names the variable, the environment contains the value. If it is unset,
authentication fails later, far from the cause."""
READS = _READS
BAD = """
[mesh]
mode = "host"
"""
GOOD = """
[mesh]
mode = "host"
"""
ENVIRONMENT = True
CONTEXT = {"bad": {"environment": {}}, "good": {"environment": {"AGENTBOX_MESH_TOKEN": "t"}}}


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per variable; none without the environment."""
    for key, need in credentials(context):
        name = context[key]
        if context.is_unset(name):
            yield context.finding(
                key,
                message=f"the variable {name} is not set; {need} needs it",
                remedy=f"Set {name} in .env beside the manifest or in the environment, or name "
                f"another in {key}.",
            )
