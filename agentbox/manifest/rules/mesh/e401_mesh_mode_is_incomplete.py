"""E401: client or host without what the mode needs."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E401", "0.1"
TITLE = "mesh mode is incomplete"
REASON = """\
A client must know its host, and both must know the enrolment token; otherwise registration
fails."""
READS = ("mesh.mode", "mesh.host_url", "mesh.token_env", "mesh.token_file")
BAD = """
[mesh]
mode = "client"
[adapters]
beads.use = "external-http"
"""
GOOD = """
[mesh]
mode = "client"
host_url = "https://mesh.example"
[adapters]
beads.use = "external-http"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per missing part."""
    mode = context["mesh.mode"]
    if mode == "client" and not context["mesh.host_url"]:
        yield context.finding(
            "mesh.host_url",
            message="the box is a mesh client and has no host",
            remedy='Set mesh.host_url = "https://<the host>:9090".',
            related=("mesh.mode",),
        )
    if mode != "standalone" and not context["mesh.token_env"] and not context["mesh.token_file"]:
        yield context.finding(
            "mesh.token_env",
            message=f"the box is a mesh {mode} and has no enrolment token",
            remedy="Set mesh.token_env to the name of a variable, or mesh.token_file to a file in "
            "the container.",
            related=("mesh.mode",),
        )
