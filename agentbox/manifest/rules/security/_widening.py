"""What of a manifest widens the box: exceptions that add a privilege, and policies that allow a direct port."""

from collections.abc import Iterator

from agentbox.manifest.features.exceptions import active, effective_delta, widenings
from agentbox.manifest.rules.context import GATES, View

READS = ("security.exceptions", "policies", "policies.*.net", *GATES)


def widened(view: View) -> Iterator[tuple[str, str, str]]:
    """Key, what it adds, why; one row an exception or policy."""
    written = view.names("security.exceptions")
    for key in (key for key in active(view.model, view.features, view.on) if key in written):
        delta = effective_delta(view.model, key)
        if found := widenings(delta):
            yield f"security.exceptions.{key}", f"the exception {key} adds {', '.join(found)}", delta.reason
    for name in view.names("policies"):
        ports = [
            text
            for rule in view[f"policies.{name}.net"]
            if rule.mode == "allow" and "tcp" in rule.operations
            for text in rule.patterns
        ]
        if ports:
            yield f"policies.{name}.net", f"the policy {name} opens TCP {', '.join(ports)} to any address", ""
