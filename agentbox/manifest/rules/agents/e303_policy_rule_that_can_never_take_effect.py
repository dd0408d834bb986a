"""E303: an invalid pattern, an overridden rule, or a denial that the kernel cannot enforce."""

from collections.abc import Iterator
from typing import Any

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import (
    effective_policy,
    is_pattern,
    is_resolvable,
    policy_chain,
)
from agentbox.manifest.rules.context import RuleContext
from agentbox.policy.patterns.base import PatternError, ScopePattern
from agentbox.policy.patterns.paths import PathPattern
from agentbox.policy.patterns.scopes import SCOPES, Scope, parse
from agentbox.policy.policy import PolicyRule, build_rule
from agentbox.policy.profiles import UNRESTRICTED

CODE, SINCE = "E303", "0.1"
TITLE = "policy rule that can never take effect"
REASON = """A rule that matches nothing, that later rules always override, or that lies outside the
ceiling of the box looks like protection or permission and is neither. The kernel enforces files and
programs as allow lists, so a denial there must remove whole patterns that the base allows."""
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


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per invalid pattern, and one per rule without effect."""
    if context.table == "policies":
        for scope in SCOPES:
            yield from _check_scope(context, scope)
    elif context.table == "agents":
        for text in context["agents.*.approval_required"]:
            kind, _, pattern = text.partition(":")
            yield from _check_form(
                context, "agents.*.approval_required", _ACTIONS[kind], pattern, ()
            )
    else:
        for text in context["egress.allow"]:
            yield from _check_form(context, "egress.allow", "net", text, ())


def _check_scope(context: RuleContext, scope: Scope) -> Iterator[Finding]:
    tables, key = context[f"policies.*.{scope}"], f"policies.*.{scope}"
    bad = {
        index: list(_bad_patterns(context, scope, index, table))
        for index, table in enumerate(tables)
    }
    rules = {
        index: build_rule(scope, table, context.entry)
        for index, table in enumerate(tables)
        if not bad[index]
    }
    for index in range(len(tables)):
        if bad[index]:
            yield from bad[index]
            continue
        later = [rule for position, rule in rules.items() if position > index]
        if overruled := _overruled(rules[index], later):
            yield context.finding(
                f"{key}[{index}].patterns",
                message=f"the rule never takes effect: {overruled} overrides all that it matches",
                remedy="Move the rule after the later one, or remove it.",
            )
        elif scope == "net" and rules[index].allow:
            yield from _check_ceiling(context, f"{key}[{index}].patterns", rules[index])
        elif scope in ("fs", "exec") and not rules[index].allow:
            yield from _check_denial(context, f"{key}[{index}].patterns", scope, rules[index])


def _bad_patterns(context: RuleContext, scope: Scope, index: int, table: Any) -> Iterator[Finding]:
    for text in table.patterns:
        yield from _check_form(
            context, f"policies.*.{scope}[{index}].patterns", scope, text, table.operations
        )


def _check_form(
    context: RuleContext, key: str, scope: Scope, text: str, operations: tuple[str, ...]
) -> Iterator[Finding]:
    for operation in operations or ("",):
        try:
            parse(scope, text, operation)
        except PatternError as error:
            yield context.finding(key, message=str(error), remedy=f"Write {error.form}.")
            return


def _overruled(rule: PolicyRule, later: list[PolicyRule]) -> str:
    """The patterns of later rules that together override this rule, or ""."""
    overruling = []
    for operation, patterns in rule.patterns.items():
        wider = [
            later_pattern
            for other in later
            if other.covers_requests_of(rule)
            for later_pattern in other.patterns.get(operation, ())
        ]
        for pattern in patterns:
            covering = [later_pattern for later_pattern in wider if later_pattern.covers(pattern)]
            if not covering:
                return ""
            overruling.append(str(covering[0]))
    return " and ".join(dict.fromkeys(overruling))


def _check_ceiling(context: RuleContext, key: str, rule: PolicyRule) -> Iterator[Finding]:
    """A target outside the ceiling; `unrestricted` has no ceiling."""
    if (
        not is_resolvable(context, context.entry)
        or policy_chain(context, context.entry)[0] == UNRESTRICTED
    ):
        return
    ceiling = [parse("net", text) for text in context["egress.allow"] if is_pattern("net", text)]
    for pattern in rule.patterns.get("connect", ()):
        if not pattern.variable and not any(pattern.overlaps(allowed) for allowed in ceiling):
            yield context.finding(
                key,
                message=f"{pattern} is outside egress.allow: the proxy always denies it",
                remedy=f'Add "{pattern}" to egress.allow, or remove it here.',
                related=("egress.allow",),
            )


def _check_denial(
    context: RuleContext, key: str, scope: Scope, rule: PolicyRule
) -> Iterator[Finding]:
    """A denial of part of an allowed pattern, or of nothing."""
    base = context["policies.*.base"]
    if not is_resolvable(context, base):
        return
    for operation, patterns in rule.patterns.items():
        granted = effective_policy(context, base, scope).permissions
        allowed = [
            permission.pattern
            for permission in granted
            if (permission.scope, permission.operation) == (scope, operation)
        ]
        for pattern in patterns:
            if not any(pattern.covers(allowed_pattern) for allowed_pattern in allowed) or any(
                _is_partial(pattern, allowed_pattern) for allowed_pattern in allowed
            ):
                names = ", ".join(map(str, allowed)) or "nothing"
                yield context.finding(
                    key,
                    message=f"{scope} {operation} {pattern} is not a union of patterns that {base} "
                    f"allows ({names})",
                    remedy=f"Deny whole patterns of {base}, or start from a narrower base and "
                    "allow the rest.",
                    related=("policies.*.base",),
                )


def _is_partial(pattern: ScopePattern, allowed: ScopePattern) -> bool:
    """Whether it denies a part of what is allowed, but not all."""
    same_root = (
        isinstance(pattern, PathPattern)
        and isinstance(allowed, PathPattern)
        and pattern.root == allowed.root
    )
    return same_root and pattern.overlaps(allowed) and not pattern.covers(allowed)
