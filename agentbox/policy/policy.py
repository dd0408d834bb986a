"""Policies: a profile with additional rules, as one ordered list per scope; the last matching rule
decides."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, Protocol
from urllib.parse import unquote

from agentbox.core.frozen import frozen
from agentbox.policy.patterns import globs
from agentbox.policy.patterns.base import ScopePattern
from agentbox.policy.patterns.paths import PathPattern
from agentbox.policy.patterns.scopes import SCOPES, Scope, parse

Bindings = Mapping[str, Sequence[str]]
"""Values of variables: `{"$EGRESS": ["example.com"]}`. Missing variables are kept."""


class PolicyRuleSpec(Protocol):
    """One `[[policies.<name>.<scope>]]` table; net rules also have `methods` and `paths`."""

    @property
    def mode(self) -> Literal["allow", "deny"]:
        """Whether it allows what matches."""
        ...

    @property
    def operations(self) -> tuple[str, ...]:
        """At least one."""
        ...

    @property
    def patterns(self) -> tuple[str, ...]:
        """At least one."""
        ...


@frozen
class PolicyRule:
    """`patterns` by operation. `methods` and `paths` restrict a net rule to such requests of plain
    HTTP; () = no restriction. A path is a glob whose `*` also matches slashes."""

    allow: bool
    patterns: Mapping[str, tuple[ScopePattern, ...]]
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    origin: str = ""

    @property
    def is_unconditional(self) -> bool:
        """True if it applies to any request, including tunnels."""
        return not self.methods and not self.paths

    def matches(self, operation: str, value: str, method: str, path: str) -> bool:
        """Whether it applies to that request."""
        return (
            any(pattern.matches(value) for pattern in self.patterns.get(operation, ()))
            and (not self.methods or method in self.methods)
            and (not self.paths or any(globs.matches(glob, path) for glob in self.paths))
        )

    def covers_requests_of(self, other: "PolicyRule") -> bool:
        """Whether its methods and paths include all of the other's."""
        methods = not self.methods or (
            bool(other.methods) and set(other.methods) <= set(self.methods)
        )
        paths = not self.paths or (
            bool(other.paths)
            and all(any(globs.covers(outer, path) for outer in self.paths) for path in other.paths)
        )
        return methods and paths


@dataclass(frozen=True)
class Permission:
    """An operation that is allowed on a pattern. Later rules may deny parts of it."""

    scope: Scope
    operation: str
    pattern: ScopePattern

    def __str__(self) -> str:
        return f"{self.scope} {self.operation} {self.pattern}"


@dataclass(frozen=True)
class Policy:
    """The rules of each scope, those of the base first."""

    name: str
    rules: Mapping[Scope, tuple[PolicyRule, ...]]

    def decide(
        self, scope: Scope, operation: str, value: str, *, method: str = "", path: str = ""
    ) -> bool:
        """True if allowed: the last matching rule decides; without one it is denied. `value` is in
        the normal form of the scope (`ScopePattern.matches`). `method` and `path` are those of a
        plain HTTP request, the path without its query; both are "" for a tunnel. Needlessly
        escaped letters and digits are decoded (RFC 3986 section 6.2.2.2). An ambiguous path (`//`,
        dots, escaped slashes, invalid escapes or UTF-8) is denied."""
        if path and not _is_unambiguous(path):
            return False
        deciding = self.deciding_rule(scope, operation, value, method=method, path=path)
        return deciding is not None and deciding.allow

    def deciding_rule(
        self, scope: Scope, operation: str, value: str, *, method: str = "", path: str = ""
    ) -> PolicyRule | None:
        """The rule that decides; None if none matches."""
        candidates, normal_path = reversed(self.rules.get(scope, ())), _normalize_path(path)
        return next(
            (rule for rule in candidates if rule.matches(operation, value, method, normal_path)),
            None,
        )

    @cached_property
    def permissions(self) -> tuple[Permission, ...]:
        """Every allowed pattern that no later rule denies completely."""
        return tuple(permission for permission, _ in self._iter_allowed())

    def permissions_beyond(self, other: "Policy") -> tuple[Permission, ...]:
        """The permissions that the other does not cover. Empty = the other allows all that this one
        allows."""
        return tuple(
            permission
            for permission, index in self._iter_allowed()
            if not other._allows(permission, self.rules[permission.scope], index)
        )

    def with_bindings(self, bindings: Bindings) -> "Policy":
        """A copy with variables replaced, without rules that have no pattern left. Raises
        PatternError for an invalid value."""
        binders = {scope: _binder(scope, bindings) for scope in self.rules}
        return Policy(
            self.name,
            {
                scope: tuple(_bind_rules(rules, binders[scope]))
                for scope, rules in self.rules.items()
            },
        )

    def _iter_allowed(self) -> Iterator[tuple[Permission, int]]:
        for scope, rules in self.rules.items():
            for index, rule in enumerate(rules):
                if rule.allow:
                    for operation, patterns in rule.patterns.items():
                        overridden = _final_patterns(rules[index + 1 :], operation)
                        yield from (
                            (Permission(scope, operation, pattern), index)
                            for pattern in patterns
                            if not _is_covered(pattern, overridden)
                        )

    def _allows(self, permission: Permission, rules: Sequence[PolicyRule], index: int) -> bool:
        """Whether this policy allows what remains of another policy's permission after its later
        rules."""
        overridden = _final_patterns(rules[index + 1 :], permission.operation)
        for rule in reversed(self.rules.get(permission.scope, ())):
            patterns = rule.patterns.get(permission.operation, ())
            if (
                rule.allow
                and _is_covered(permission.pattern, patterns)
                and rule.covers_requests_of(rules[index])
            ):
                return True
            if not rule.allow and any(
                pattern.overlaps(permission.pattern) and not _is_covered(pattern, overridden)
                for pattern in patterns
            ):
                return False
        return False


def build_policy(
    name: str, specs: Mapping[Scope, Iterable[PolicyRuleSpec]], base: Policy | None = None
) -> Policy:
    """The policy of a base and additional rules. Raises PatternError for an invalid pattern."""
    base_rules: Mapping[Scope, tuple[PolicyRule, ...]] = base.rules if base else {}
    added_rules = {
        scope: tuple(build_rule(scope, table, name) for table in specs.get(scope, ()))
        for scope in SCOPES
    }
    return Policy(
        name, {scope: (*base_rules.get(scope, ()), *added_rules[scope]) for scope in SCOPES}
    )


def build_rule(scope: Scope, table: PolicyRuleSpec, origin: str) -> PolicyRule:
    """Converts a table to a rule. Raises PatternError."""
    operations = table.operations
    return PolicyRule(
        allow=table.mode == "allow",
        patterns={
            operation: tuple(parse(scope, text, operation) for text in table.patterns)
            for operation in operations
        },
        methods=getattr(table, "methods", ()),
        paths=getattr(table, "paths", ()),
        origin=origin,
    )


# Servers with path parameters also treat dots before a `;` as dots; %25 is an escaped escape, which
# some decode twice.
_AMBIGUOUS: Final = re.compile(
    r"//|/\.\.?([/;]|$)|\\|%(25)*(2e|2f|5c|[01][0-9a-f]|7f|u)|%(?![0-9a-f]{2})", re.IGNORECASE
)
_UNRESERVED: Final = re.compile(
    r"%([46][1-9a-f]|[57][0-9a]|3[0-9]|2d|5f|7e)", re.IGNORECASE
)  # RFC 3986 section 2.3


def _normalize_path(path: str) -> str:
    """Decodes needlessly escaped characters, as servers do."""
    return _UNRESERVED.sub(lambda match: chr(int(match[1], 16)), path) if "%" in path else path


def _is_unambiguous(path: str) -> bool:
    if not path.startswith("/") or _AMBIGUOUS.search(path):
        return False
    return "%" not in path or _decodes_uniquely(path)


def _decodes_uniquely(path: str) -> bool:
    """Whether its escapes are valid UTF-8, without overlong forms or characters that some servers
    treat as slash or dots."""
    try:
        decoded = unquote(path, errors="strict")
        decoded_twice = unquote(decoded, errors="strict")
    except UnicodeDecodeError:
        return False
    folded = unicodedata.normalize("NFKC", decoded_twice)
    return folded.count("/") == path.count("/") and not _AMBIGUOUS.search(folded.replace("%", ""))


def _final_patterns(rules: Sequence[PolicyRule], operation: str) -> tuple[ScopePattern, ...]:
    """The patterns on which one of these rules decides, for any request."""
    return tuple(
        pattern
        for rule in rules
        if rule.is_unconditional
        for pattern in rule.patterns.get(operation, ())
    )


def _is_covered(pattern: ScopePattern, others: Iterable[ScopePattern]) -> bool:
    return any(type(other) is type(pattern) and other.covers(pattern) for other in others)


def _bind_rules(
    rules: Iterable[PolicyRule], bind: Callable[[ScopePattern], tuple[ScopePattern, ...]]
) -> Iterator[PolicyRule]:
    for rule in rules:
        patterns = {
            operation: tuple(item for pattern in patterns for item in bind(pattern))
            for operation, patterns in rule.patterns.items()
        }
        if any(patterns.values()):
            yield replace(rule, patterns=patterns)


def _binder(scope: Scope, bindings: Bindings) -> Callable[[ScopePattern], tuple[ScopePattern, ...]]:
    values = {
        name: tuple(parse(scope, text) for text in texts)
        for name, texts in bindings.items()
        if _is_variable_of(scope, name)
    }

    def bind(pattern: ScopePattern) -> tuple[ScopePattern, ...]:
        if pattern.variable not in values:
            return (pattern,)
        bases = values[pattern.variable]
        return tuple(_rebase(pattern, base) for base in bases)

    return bind


def _rebase(pattern: ScopePattern, base: ScopePattern) -> ScopePattern:
    if isinstance(pattern, PathPattern) and isinstance(base, PathPattern):
        return pattern.rebase(base)
    return base


_VARIABLES: Final[Mapping[Scope, tuple[str, ...]]] = {
    "fs": ("$WORKSPACE", "$TMP", "$TOOLCHAIN"),
    "exec": ("$WORKSPACE", "$TMP", "$TOOLCHAIN", "$COMMAND"),
    "net": ("$EGRESS",),
    "env": ("$ENV",),
    "tool": ("$MCP",),
    "llm": ("$PROVIDER",),
    "agent": ("$CHILDREN",),
}


def _is_variable_of(scope: Scope, name: str) -> bool:
    return name in _VARIABLES.get(scope, ())
