"""I204: one finding that lists everything that is widened."""

from collections.abc import Iterator

from agentbox.manifest.features.security_exceptions import active_keys, effective_delta
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules._hosts import is_loopback
from agentbox.manifest.rules.agents._policies import enabled_agents
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.rules.security import _widening

CODE, SINCE = "I204", "0.1"
TITLE = "what is widened"
REASON = """\
The baseline is the same for every box. This finding lists everything beyond it, for review
before acknowledgement."""
READS = (
    "meta.dev",
    "api.publish_address",
    "observability.publish_address",
    "sovereign_mesh.relay.enabled",
    "sovereign_mesh.relay.expose",
    "egress.allow",
    "network.resolve",
    "limits.allow_degraded",
    "backup.folder",
    "agents",
    "agents.*.enabled",
    "agents.*.workspace",
    "agents.*.limits.allow_degraded",
    "mcp.servers.*.enabled",
    "mcp.servers.*.pin",
    *_widening.READS,
)
BAD = """
[meta]
dev = true
"""
GOOD = ""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, at the first listed key."""
    widenings = list(_find_widenings(context))
    if widenings:
        first, _ = widenings[0]
        yield context.finding(
            first,
            message=f"widened: {'; '.join(text for _, text in widenings)}",
            remedy="No action is needed if each of these is intended.",
            related=tuple(key for key, _ in widenings[1:]),
        )


def _find_widenings(context: RuleContext) -> Iterator[tuple[str, str]]:
    written = context.names("security.exceptions")
    for name in (
        name
        for name in active_keys(context.model, context.features, context.enabled_features)
        if name in written
    ):
        delta = effective_delta(context.model, name)
        if not delta.is_empty:
            yield f"security.exceptions.{name}", f"exception {name}: {delta.reason}"
    for key in ("api.publish_address", "observability.publish_address"):
        if not is_loopback(context[key]):
            yield key, f"{key} is {context[key]}"
    if context["sovereign_mesh.relay.enabled"] and context["sovereign_mesh.relay.expose"]:
        yield "sovereign_mesh.relay.expose", "the relay is published"
    if wildcards := [text for text in context["egress.allow"] if text.partition(":")[0] == "*"]:
        yield "egress.allow", f"agents may reach {' and '.join(wildcards)}"
    if context["network.resolve"] == "proxy":
        yield "network.resolve", "names that agents reach are not checked for private addresses"
    if context["backup.folder"].startswith("/"):
        yield "backup.folder", "the box writes, and can delete, snapshots in a folder of this host"
    if degraded := context["limits.allow_degraded"]:
        yield "limits.allow_degraded", f"agents may start without {', '.join(degraded)}"
    yield from (
        (key, added)
        for key, added, _ in _widening.find_widenings(context)
        if key.startswith("policies.")
    )
    yield from _agent_widenings(context)
    for server in context.names("mcp.servers"):
        key = f"mcp.servers.{server}.pin"
        if context[f"mcp.servers.{server}.enabled"] and context[key] == "first-use":
            yield key, f"the tools of {server} are offered as first seen"
    if context["meta.dev"]:
        yield "meta.dev", "a development box"


def _agent_widenings(context: RuleContext) -> Iterator[tuple[str, str]]:
    for name in enabled_agents(context):
        degraded = context[f"agents.{name}.limits.allow_degraded"]
        if degraded and context.is_written(f"agents.{name}.limits.allow_degraded"):
            yield (
                f"agents.{name}.limits.allow_degraded",
                f"{name} may start without {', '.join(degraded)}",
            )
        if context[f"agents.{name}.workspace"] == "direct":
            yield f"agents.{name}.workspace", f"{name} writes to the workspace without review"
