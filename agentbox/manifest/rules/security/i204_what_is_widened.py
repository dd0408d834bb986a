"""I204: one notice that lists everything the operator has widened."""

from collections.abc import Iterator

from agentbox.manifest.features.exceptions import active, effective_delta
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules._hosts import is_loopback
from agentbox.manifest.rules.agents._policies import enabled_agents
from agentbox.manifest.rules.context import View
from agentbox.manifest.rules.security import _widening

CODE, SINCE = "I204", "0.1"
TITLE = "what is widened"
WHY = """The baseline is the same for every box. What a manifest opens beyond it belongs on one list that a person can
read before acknowledging it."""
READS = (
    "meta.dev",
    "api.publish_address",
    "observability.publish_address",
    "sovereign_mesh.relay.enabled",
    "sovereign_mesh.relay.expose",
    "egress.allow",
    "limits.allow_degraded",
    "agents",
    "agents.*.enabled",
    "agents.*.workspace",
    "agents.*.limits.allow_degraded",
    *_widening.READS,
)
BAD = """
[meta]
dev = true
"""
GOOD = ""


def check(view: View) -> Iterator[Finding]:
    """At most one finding, at the first of what it lists."""
    found = list(_widened(view))
    if found:
        first, _ = found[0]
        yield view.finding(
            first,
            message=f"widened: {'; '.join(text for _, text in found)}",
            remedy="Nothing to do if each of these is meant.",
            related=tuple(key for key, _ in found[1:]),
        )


def _widened(view: View) -> Iterator[tuple[str, str]]:
    written = view.names("security.exceptions")
    for name in (name for name in active(view.model, view.features, view.on) if name in written):
        delta = effective_delta(view.model, name)
        if not delta.empty:
            yield f"security.exceptions.{name}", f"exception {name}: {delta.reason}"
    for key in ("api.publish_address", "observability.publish_address"):
        if not is_loopback(view[key]):
            yield key, f"{key} is {view[key]}"
    if view["sovereign_mesh.relay.enabled"] and view["sovereign_mesh.relay.expose"]:
        yield "sovereign_mesh.relay.expose", "the relay is published"
    if everything := [text for text in view["egress.allow"] if text.partition(":")[0] == "*"]:
        yield "egress.allow", f"agents may reach {' and '.join(everything)}"
    if degraded := view["limits.allow_degraded"]:
        yield "limits.allow_degraded", f"agents may start without {', '.join(degraded)}"
    yield from ((key, added) for key, added, _ in _widening.widened(view) if key.startswith("policies."))
    yield from _agents(view)
    if view["meta.dev"]:
        yield "meta.dev", "a development box"


def _agents(view: View) -> Iterator[tuple[str, str]]:
    for name in enabled_agents(view):
        degraded = view[f"agents.{name}.limits.allow_degraded"]
        if degraded and view.written(f"agents.{name}.limits.allow_degraded"):
            yield f"agents.{name}.limits.allow_degraded", f"{name} may start without {', '.join(degraded)}"
        if view[f"agents.{name}.workspace"] == "direct":
            yield f"agents.{name}.workspace", f"{name} writes to the workspace without review"
