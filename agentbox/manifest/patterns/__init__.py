"""Patterns of policies: parse, match, and the relations `covers` and `overlaps`. Rules, sandbox and gateway share them."""

from agentbox.manifest.patterns.base import Pattern, PatternError
from agentbox.manifest.patterns.hosts import HostPattern, split_address
from agentbox.manifest.patterns.names import NamePattern
from agentbox.manifest.patterns.paths import PathPattern
from agentbox.manifest.patterns.scopes import OPERATIONS, SCOPES, Scope, parse

__all__ = [
    "OPERATIONS",
    "SCOPES",
    "HostPattern",
    "NamePattern",
    "PathPattern",
    "Pattern",
    "PatternError",
    "Scope",
    "parse",
    "split_address",
]
