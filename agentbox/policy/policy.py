"""Policies: a profile and what is laid over it, as one ordered list of rules a scope; the last rule that matches decides."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, Protocol
from urllib.parse import unquote

from agentbox.policy.patterns import globs
from agentbox.policy.patterns.base import Pattern
from agentbox.policy.patterns.paths import PathPattern
from agentbox.policy.patterns.scopes import SCOPES, Scope, parse

Bindings = Mapping[str, Sequence[str]]
"""What variables stand for: `{"$EGRESS": ["example.com"]}`. A variable that is absent stays as it is."""


class WrittenRule(Protocol):
    """One `[[policies.<name>.<scope>]]` table; net rules also have `methods` and `paths`."""

    @property
    def mode(self) -> Literal["allow", "deny"]:
        """Whether what matches is allowed."""
        ...

    @property
    def operations(self) -> tuple[str, ...]:
        """At least one."""
        ...

    @property
    def patterns(self) -> tuple[str, ...]:
        """At least one."""
        ...


@dataclass(frozen=True, kw_only=True)
class PolicyRule:
    """`patterns` by operation. `methods` and `paths` limit a net rule to such requests of plain HTTP; () = no limit.

    A path is a glob whose `*` reaches over slashes.
    """

    allow: bool
    patterns: Mapping[str, tuple[Pattern, ...]]
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    origin: str = ""

    @property
    def whole(self) -> bool:
        """True when it holds for any request, tunnels among them."""
        return not self.methods and not self.paths

    def matches(self, operation: str, value: str, method: str, path: str) -> bool:
        """Whether it speaks about that request."""
        return (
            any(pattern.matches(value) for pattern in self.patterns.get(operation, ()))
            and (not self.methods or method in self.methods)
            and (not self.paths or any(globs.matches(glob, path) for glob in self.paths))
        )

    def covers_requests_of(self, other: "PolicyRule") -> bool:
        """Whether methods and paths leave out nothing that the other's take in."""
        methods = not self.methods or (bool(other.methods) and set(other.methods) <= set(self.methods))
        paths = not self.paths or (
            bool(other.paths) and all(any(globs.covers(wide, path) for wide in self.paths) for path in other.paths)
        )
        return methods and paths


@dataclass(frozen=True)
class Grant:
    """An operation that is allowed on a pattern. Later rules may take parts of it back."""

    scope: Scope
    operation: str
    pattern: Pattern

    def __str__(self) -> str:
        return f"{self.scope} {self.operation} {self.pattern}"


@dataclass(frozen=True)
class Policy:
    """The rules of each scope, those of the base first."""

    name: str
    rules: Mapping[Scope, tuple[PolicyRule, ...]]

    def decide(self, scope: Scope, operation: str, value: str, *, method: str = "", path: str = "") -> bool:
        """True when allowed: by the last rule that matches, and not at all without one.

        `value` is in the normal form of the scope (`Pattern.matches`). `method` and `path` are those of a plain HTTP
        request, the path without its query; both are "" for a tunnel. Letters and digits that are escaped without need are
        read as themselves (RFC 3986 section 6.2.2.2). A path that two programs may read in two ways (`//`, dots, escaped
        slashes, escapes that are no UTF-8 or not of two hexadecimal digits) is refused.
        """
        if path and not _plain(path):
            return False
        rule = self.decisive(scope, operation, value, method=method, path=path)
        return rule is not None and rule.allow

    def decisive(
        self, scope: Scope, operation: str, value: str, *, method: str = "", path: str = ""
    ) -> PolicyRule | None:
        """The rule that decides; None where none matches."""
        later, meant = reversed(self.rules.get(scope, ())), _meant(path)
        return next((rule for rule in later if rule.matches(operation, value, method, meant)), None)

    @cached_property
    def grants(self) -> tuple[Grant, ...]:
        """What it allows: every allow pattern that no later deny takes back whole."""
        return tuple(grant for grant, _ in self._allowed())

    def beyond(self, other: "Policy") -> tuple[Grant, ...]:
        """The grants that the other does not cover. Empty = whatever this allows, the other allows."""
        return tuple(grant for grant, at in self._allowed() if not other._allows(grant, self.rules[grant.scope], at))

    def bound(self, bindings: Bindings) -> "Policy":
        """The same with variables replaced. A rule that has no pattern left goes. Raises PatternError for a value."""
        bind = {scope: _binder(scope, bindings) for scope in self.rules}
        return Policy(self.name, {scope: tuple(_bound(rules, bind[scope])) for scope, rules in self.rules.items()})

    def _allowed(self) -> Iterator[tuple[Grant, int]]:
        for scope, rules in self.rules.items():
            for at, rule in enumerate(rules):
                if rule.allow:
                    for operation, patterns in rule.patterns.items():
                        decided = _decided(rules[at + 1 :], operation)
                        yield from (
                            (Grant(scope, operation, pattern), at)
                            for pattern in patterns
                            if not _covered(pattern, decided)
                        )

    def _allows(self, grant: Grant, rules: Sequence[PolicyRule], at: int) -> bool:
        """Whether this allows all of another's grant that the other's later rules leave to it."""
        elsewhere = _decided(rules[at + 1 :], grant.operation)
        for rule in reversed(self.rules.get(grant.scope, ())):
            patterns = rule.patterns.get(grant.operation, ())
            if rule.allow and _covered(grant.pattern, patterns) and rule.covers_requests_of(rules[at]):
                return True
            if not rule.allow and any(
                pattern.overlaps(grant.pattern) and not _covered(pattern, elsewhere) for pattern in patterns
            ):
                return False
        return False


def make(name: str, written: Mapping[Scope, Iterable[WrittenRule]], base: Policy | None = None) -> Policy:
    """The policy of a base and the tables laid over it. Raises PatternError for a text that is no pattern."""
    before: Mapping[Scope, tuple[PolicyRule, ...]] = base.rules if base else {}
    own = {scope: tuple(rule_of(scope, table, name) for table in written.get(scope, ())) for scope in SCOPES}
    return Policy(name, {scope: (*before.get(scope, ()), *own[scope]) for scope in SCOPES})


def rule_of(scope: Scope, table: WrittenRule, origin: str) -> PolicyRule:
    """One table as a rule. Raises PatternError."""
    operations = table.operations
    return PolicyRule(
        allow=table.mode == "allow",
        patterns={
            operation: tuple(parse(scope, text, operation) for text in table.patterns) for operation in operations
        },
        methods=getattr(table, "methods", ()),
        paths=getattr(table, "paths", ()),
        origin=origin,
    )


# Dots before a `;` are dots to servers that know parameters of segments; %25 is an escaped escape, which some undo twice.
_ODD: Final = re.compile(r"//|/\.\.?([/;]|$)|\\|%(25)*(2e|2f|5c|[01][0-9a-f]|7f|u)|%(?![0-9a-f]{2})", re.IGNORECASE)
_UNRESERVED: Final = re.compile(r"%([46][1-9a-f]|[57][0-9a]|3[0-9]|2d|5f|7e)", re.IGNORECASE)  # RFC 3986 section 2.3


def _meant(path: str) -> str:
    """The path with what is escaped without need as itself: servers do not tell the two apart."""
    return _UNRESERVED.sub(lambda found: chr(int(found[1], 16)), path) if "%" in path else path


def _plain(path: str) -> bool:
    if not path.startswith("/") or _ODD.search(path):
        return False
    return "%" not in path or _decodes_one_way(path)


def _decodes_one_way(path: str) -> bool:
    """Whether its escapes are UTF-8, without overlong forms, and no character that some servers take for a slash or dots."""
    try:
        decoded = unquote(path, errors="strict")
        twice = unquote(decoded, errors="strict")
    except UnicodeDecodeError:
        return False
    folded = unicodedata.normalize("NFKC", twice)
    return folded.count("/") == path.count("/") and not _ODD.search(folded.replace("%", ""))


def _decided(rules: Sequence[PolicyRule], operation: str) -> tuple[Pattern, ...]:
    """The patterns about which one of these rules has the last word, whatever the request."""
    return tuple(pattern for rule in rules if rule.whole for pattern in rule.patterns.get(operation, ()))


def _covered(pattern: Pattern, by: Iterable[Pattern]) -> bool:
    return any(type(one) is type(pattern) and one.covers(pattern) for one in by)


def _bound(rules: Iterable[PolicyRule], bind: Callable[[Pattern], tuple[Pattern, ...]]) -> Iterator[PolicyRule]:
    for rule in rules:
        patterns = {
            operation: tuple(bound for pattern in patterns for bound in bind(pattern))
            for operation, patterns in rule.patterns.items()
        }
        if any(patterns.values()):
            yield replace(rule, patterns=patterns)


def _binder(scope: Scope, bindings: Bindings) -> Callable[[Pattern], tuple[Pattern, ...]]:
    values = {
        name: tuple(parse(scope, text) for text in texts) for name, texts in bindings.items() if _fits(scope, name)
    }

    def bind(pattern: Pattern) -> tuple[Pattern, ...]:
        if pattern.variable not in values:
            return (pattern,)
        places = values[pattern.variable]
        return tuple(_under(pattern, place) for place in places)

    return bind


def _under(pattern: Pattern, place: Pattern) -> Pattern:
    if isinstance(pattern, PathPattern) and isinstance(place, PathPattern):
        return pattern.under(place)
    return place


_VARIABLES: Final[Mapping[Scope, tuple[str, ...]]] = {
    "fs": ("$WORKSPACE", "$TMP", "$TOOLCHAIN"),
    "exec": ("$WORKSPACE", "$TMP", "$TOOLCHAIN", "$COMMAND"),
    "net": ("$EGRESS",),
    "env": ("$ENV",),
    "llm": ("$PROVIDER",),
    "agent": ("$CHILDREN",),
}


def _fits(scope: Scope, name: str) -> bool:
    return name in _VARIABLES.get(scope, ())
