"""What widens the box: exceptions that add a privilege, and policies that allow a direct port."""

from collections.abc import Iterator

from agentbox.manifest.features.security_exceptions import active_keys, effective_delta, widenings
from agentbox.manifest.rules.context import GATES, RuleContext

READS = ("security.exceptions", "policies", "policies.*.net", *GATES)


def find_widenings(context: RuleContext) -> Iterator[tuple[str, str, str]]:
    """Key, addition and reason, one row per exception or policy."""
    written = context.names("security.exceptions")
    for key in (
        key
        for key in active_keys(context.model, context.features, context.enabled_features)
        if key in written
    ):
        delta = effective_delta(context.model, key)
        if additions := widenings(delta):
            yield (
                f"security.exceptions.{key}",
                f"the exception {key} adds {', '.join(additions)}",
                delta.reason,
            )
    for name in context.names("policies"):
        ports = [
            text
            for rule in context[f"policies.{name}.net"]
            if rule.mode == "allow" and "tcp" in rule.operations
            for text in rule.patterns
        ]
        if ports:
            yield (
                f"policies.{name}.net",
                f"the policy {name} opens TCP {', '.join(ports)} to any address",
                "",
            )
