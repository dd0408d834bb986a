"""E308: a target that the proxy always blocks."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules._hosts import is_loopback
from agentbox.manifest.rules.agents._policies import is_pattern
from agentbox.manifest.rules.context import RuleContext
from agentbox.policy.patterns.blocked_ranges import is_blocked
from agentbox.policy.patterns.hosts import HostPattern
from agentbox.policy.patterns.scopes import parse

CODE, SINCE = "E308", "0.1"
TITLE = "private target not exempt"
REASON = """\
The proxy blocks loopback, private, link-local and metadata addresses after resolution, so
that no name can lead an agent into the network around the box. A target in such a range would
always be blocked."""
READS = ("egress.allow", "egress.allow_private", "policies", "policies.*.net")
BAD = """
[egress]
allow = ["10.0.0.5:443"]
"""
GOOD = """
[egress]
allow = ["10.0.0.5:443"]
allow_private = ["10.0.0.5:443"]
"""
EACH = ("", "policies")


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per target."""
    exempt = [
        HostPattern.parse(text)
        for text in context["egress.allow_private"]
        if is_pattern("net", text)
    ]
    for key, text in _targets(context):
        if not is_pattern("net", text):
            continue  # reported by E303
        target = parse("net", text)
        if (
            isinstance(target, HostPattern)
            and _is_private(target)
            and not any(exemption.covers(target) for exemption in exempt)
        ):
            yield context.finding(
                key,
                message=f"{text} is in a range that the proxy always blocks",
                remedy=f'Add "{target.address_and_port}" to egress.allow_private, if agents may '
                "reach it.",
                related=("egress.allow_private",),
            )


def _targets(context: RuleContext) -> Iterator[tuple[str, str]]:
    if not context.table:
        yield from (("egress.allow", text) for text in context["egress.allow"])
        return
    for index, rule in enumerate(context["policies.*.net"]):
        if rule.mode == "allow" and "connect" in rule.operations:
            yield from ((f"policies.*.net[{index}].patterns", text) for text in rule.patterns)


def _is_private(target: HostPattern) -> bool:
    return (
        is_blocked(target.network)
        if target.network is not None
        else is_loopback(target.name.removeprefix("*."))
    )
