"""The seven scopes of a policy, their operations and pattern types."""

from collections.abc import Mapping
from typing import Final, Literal

from agentbox.policy.patterns.base import PatternError, ScopePattern
from agentbox.policy.patterns.hosts import HostPattern, PortPattern
from agentbox.policy.patterns.names import NamePattern
from agentbox.policy.patterns.paths import PathPattern

Scope = Literal["fs", "net", "exec", "env", "tool", "llm", "agent"]

OPERATIONS: Final[Mapping[Scope, tuple[str, ...]]] = {
    "fs": ("read", "write"),
    "net": ("connect", "tcp"),
    "exec": ("run",),
    "env": ("read",),
    "tool": ("call",),
    "llm": ("call",),
    "agent": ("spawn", "message", "signal"),
}
SCOPES: Final = tuple(OPERATIONS)


def parse(scope: Scope, text: str, operation: str = "") -> ScopePattern:
    """Parses the pattern of a scope; `operation` matters in net only. Raises PatternError."""
    if scope in ("fs", "exec"):
        return PathPattern.parse(text, exec_scope=scope == "exec")
    if scope == "net":
        return PortPattern.parse(text) if operation == "tcp" else HostPattern.parse(text)
    return NamePattern.parse(scope, text)


def is_pattern(scope: Scope, text: str) -> bool:
    """Whether the scope has a pattern of that text."""
    try:
        parse(scope, text)
    except PatternError:
        return False
    return True
