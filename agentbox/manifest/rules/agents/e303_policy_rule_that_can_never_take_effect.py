"""E303: a pattern that matches nothing, a rule that others always overrule, a denial that the kernel cannot hold."""

from collections.abc import Iterator
from typing import Any

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import chain_of, fits, policy_of, resolves
from agentbox.manifest.rules.context import View
from agentbox.policy.patterns.base import Pattern, PatternError
from agentbox.policy.patterns.paths import PathPattern
from agentbox.policy.patterns.scopes import SCOPES, Scope, parse
from agentbox.policy.policy import PolicyRule, rule_of
from agentbox.policy.profiles import UNRESTRICTED

CODE, SINCE = "E303", "0.1"
TITLE = "policy rule that can never take effect"
WHY = """A rule that matches nothing, that later rules always overrule, or that lies outside the ceiling of the box looks
like protection or permission and is neither. The kernel holds files and programs as allow lists, so a denial there must
take back whole patterns that the base allows."""
READS = (
    "agents",
    "agents.*.approval_required",
    "egress.allow",
    "policies",
    "policies.*.base",
    *(f"policies.*.{scope}" for scope in SCOPES),
)
BAD = """
[policies.web]
base = "standard"
net = [{ mode = "allow", patterns = ["https://x.example/"] }]
"""
GOOD = """
[egress]
allow = ["x.example"]
[policies.web]
base = "standard"
net = [{ mode = "allow", patterns = ["x.example"] }]
"""
EACH = ("", "agents", "policies")
_ACTIONS: dict[str, Scope] = {"tool": "tool", "host": "net", "spawn": "agent"}


def check(view: View) -> Iterator[Finding]:
    """One finding a pattern that has no form, and one a rule that has no effect."""
    if view.table == "policies":
        for scope in SCOPES:
            yield from _of_scope(view, scope)
    elif view.table == "agents":
        for text in view["agents.*.approval_required"]:
            kind, _, pattern = text.partition(":")
            yield from _formless(view, "agents.*.approval_required", _ACTIONS[kind], pattern, ())
    else:
        for text in view["egress.allow"]:
            yield from _formless(view, "egress.allow", "net", text, ())


def _of_scope(view: View, scope: Scope) -> Iterator[Finding]:
    tables, key = view[f"policies.*.{scope}"], f"policies.*.{scope}"
    bad = {at: list(_bad_patterns(view, scope, at, table)) for at, table in enumerate(tables)}
    rules = {at: rule_of(scope, table, view.entry) for at, table in enumerate(tables) if not bad[at]}
    for at in range(len(tables)):
        if bad[at]:
            yield from bad[at]
            continue
        later = [rule for place, rule in rules.items() if place > at]
        if overruled := _overruled(rules[at], later):
            yield view.finding(
                f"{key}[{at}].patterns",
                message=f"the rule never decides: {overruled} has the last word on all that it matches",
                remedy="Move the rule behind the later one, or remove it.",
            )
        elif scope == "net" and rules[at].allow:
            yield from _outside(view, f"{key}[{at}].patterns", rules[at])
        elif scope in ("fs", "exec") and not rules[at].allow:
            yield from _finer(view, f"{key}[{at}].patterns", scope, rules[at])


def _bad_patterns(view: View, scope: Scope, at: int, table: Any) -> Iterator[Finding]:
    for text in table.patterns:
        yield from _formless(view, f"policies.*.{scope}[{at}].patterns", scope, text, table.operations)


def _formless(view: View, key: str, scope: Scope, text: str, operations: tuple[str, ...]) -> Iterator[Finding]:
    for operation in operations or ("",):
        try:
            parse(scope, text, operation)
        except PatternError as error:
            yield view.finding(key, message=str(error), remedy=f"Write {error.form}.")
            return


def _overruled(rule: PolicyRule, later: list[PolicyRule]) -> str:
    """The patterns of later rules that together leave nothing to this one, or ""."""
    by = []
    for operation, patterns in rule.patterns.items():
        wider = [one for other in later if other.covers_requests_of(rule) for one in other.patterns.get(operation, ())]
        for pattern in patterns:
            covering = [one for one in wider if one.covers(pattern)]
            if not covering:
                return ""
            by.append(str(covering[0]))
    return " and ".join(dict.fromkeys(by))


def _outside(view: View, key: str, rule: PolicyRule) -> Iterator[Finding]:
    """A target that the ceiling never lets through; for `unrestricted` there is no ceiling."""
    if not resolves(view, view.entry) or chain_of(view, view.entry)[0] == UNRESTRICTED:
        return
    ceiling = [parse("net", text) for text in view["egress.allow"] if fits("net", text)]
    for pattern in rule.patterns.get("connect", ()):
        if not pattern.variable and not any(pattern.overlaps(allowed) for allowed in ceiling):
            yield view.finding(
                key,
                message=f"{pattern} is outside egress.allow: the proxy never lets it through",
                remedy=f'Add "{pattern}" to egress.allow, or remove it here.',
                related=("egress.allow",),
            )


def _finer(view: View, key: str, scope: Scope, rule: PolicyRule) -> Iterator[Finding]:
    """A denial that takes a part of an allowed pattern, or nothing."""
    base = view["policies.*.base"]
    if not resolves(view, base):
        return
    for operation, patterns in rule.patterns.items():
        granted = policy_of(view, base, scope).grants
        allowed = [grant.pattern for grant in granted if (grant.scope, grant.operation) == (scope, operation)]
        for pattern in patterns:
            if not any(pattern.covers(one) for one in allowed) or any(_cuts(pattern, one) for one in allowed):
                names = ", ".join(map(str, allowed)) or "nothing"
                yield view.finding(
                    key,
                    message=f"{scope} {operation} {pattern} is no union of what {base} allows ({names})",
                    remedy=f"Deny whole patterns of {base}, or start from a narrower base and allow what is left.",
                    related=("policies.*.base",),
                )


def _cuts(pattern: Pattern, allowed: Pattern) -> bool:
    """Whether a part of what is allowed is surely taken and a part left."""
    same_ground = isinstance(pattern, PathPattern) and isinstance(allowed, PathPattern) and pattern.root == allowed.root
    return same_ground and pattern.overlaps(allowed) and not pattern.covers(allowed)
