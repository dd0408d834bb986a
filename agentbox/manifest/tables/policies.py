"""[policies.<name>]: what an agent may do, by scope. Everything is denied by default; the last
matching rule decides.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from agentbox.manifest.types import MinItems, Name, TypeName, Unique, key

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
FsOperation = Literal["read", "write"]
NetOperation = Literal["connect", "tcp"]
AgentOperation = Literal["spawn", "message", "signal"]
_Patterns = Annotated[tuple[Annotated[str, TypeName("pattern")], ...], MinItems(1), Unique()]
_OPERATIONS = (MinItems(1), Unique())


@dataclass(frozen=True, kw_only=True)
class RuleTable:
    """Keys of all rules. Without `operations` a rule applies to all of its scope, in `net` to
    `connect`.
    """

    mode: Literal["allow", "deny"] = key("deny", "live", required=True)
    patterns: _Patterns = key((), "live", required=True)


@dataclass(frozen=True, kw_only=True)
class FsRule(RuleTable):
    """A rule about files."""

    operations: Annotated[tuple[FsOperation, ...], *_OPERATIONS] = key(("read", "write"), "live")


@dataclass(frozen=True, kw_only=True)
class NetRule(RuleTable):
    """A rule about the network. `methods` and `paths` restrict it to such plain HTTP requests;
    empty = all.
    """

    operations: Annotated[tuple[NetOperation, ...], *_OPERATIONS] = key(("connect",), "live")
    methods: Annotated[tuple[Method, ...], Unique()] = key((), "live")
    paths: Annotated[tuple[Annotated[str, TypeName("http_path")], ...], Unique()] = key((), "live")


@dataclass(frozen=True, kw_only=True)
class ExecRule(RuleTable):
    """A rule about programs."""

    operations: Annotated[tuple[Literal["run"], ...], *_OPERATIONS] = key(("run",), "live")


@dataclass(frozen=True, kw_only=True)
class EnvRule(RuleTable):
    """A rule about environment variables."""

    operations: Annotated[tuple[Literal["read"], ...], *_OPERATIONS] = key(("read",), "live")


@dataclass(frozen=True, kw_only=True)
class CallRule(RuleTable):
    """A rule about tools or about models."""

    operations: Annotated[tuple[Literal["call"], ...], *_OPERATIONS] = key(("call",), "live")


@dataclass(frozen=True, kw_only=True)
class AgentRule(RuleTable):
    """A rule about other agents."""

    operations: Annotated[tuple[AgentOperation, ...], *_OPERATIONS] = key(
        ("spawn", "message", "signal"), "live"
    )


@dataclass(frozen=True, kw_only=True)
class PolicyTable:
    """Rules in addition to those of `base`, a built-in profile or another policy."""

    base: Name = key("sandboxed", "live")
    fs: tuple[FsRule, ...] = key((), "live")
    net: tuple[NetRule, ...] = key((), "live")
    exec: tuple[ExecRule, ...] = key((), "live")
    env: tuple[EnvRule, ...] = key((), "live")
    tool: tuple[CallRule, ...] = key((), "live")
    llm: tuple[CallRule, ...] = key((), "live")
    agent: tuple[AgentRule, ...] = key((), "live")


SCOPES = ("fs", "net", "exec", "env", "tool", "llm", "agent")
