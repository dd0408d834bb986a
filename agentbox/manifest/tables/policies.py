"""[policies.<name>]: what an agent may do, by scope. Everything is denied by default; the last
matching rule decides.
"""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import MinItems, Unique
from agentbox.manifest.declarations.key import key
from agentbox.manifest.named_types import HttpPath
from agentbox.manifest.types import Name, PolicyPattern

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
FsOperation = Literal["read", "write"]
NetOperation = Literal["connect", "tcp"]
AgentOperation = Literal["spawn", "message", "signal"]
_Patterns = Annotated[tuple[PolicyPattern, ...], MinItems(1), Unique()]
_OPERATIONS = (MinItems(1), Unique())


@frozen
class RuleTable:
    """Keys of all rules. Without `operations` a rule applies to all of its scope, in `net` to
    `connect`.
    """

    mode: Literal["allow", "deny"] = key("deny", "live", required=True, doc="allow or deny.")
    patterns: _Patterns = key((), "live", required=True, doc="What the rule is about.")


@frozen
class FsRule(RuleTable):
    """A rule about files."""

    operations: Annotated[tuple[FsOperation, ...], *_OPERATIONS] = key(
        ("read", "write"), "live", doc="What is done with it. Absent = all operations of the scope."
    )


@frozen
class NetRule(RuleTable):
    """A rule about the network."""

    operations: Annotated[tuple[NetOperation, ...], *_OPERATIONS] = key(
        ("connect",),
        "live",
        doc="connect = through the proxy; tcp = direct to any address (widening). Absent "
        "= connect.",
    )
    methods: Annotated[tuple[Method, ...], Unique()] = key(
        (), "live", doc="Methods of plain HTTP; empty = all."
    )
    paths: Annotated[tuple[HttpPath, ...], Unique()] = key(
        (), "live", doc="Paths of plain HTTP; empty = all."
    )


@frozen
class ExecRule(RuleTable):
    """A rule about programs."""

    operations: Annotated[tuple[Literal["run"], ...], *_OPERATIONS] = key(
        ("run",), "live", doc="What is done with it. Absent = all operations of the scope."
    )


@frozen
class EnvRule(RuleTable):
    """A rule about variables."""

    operations: Annotated[tuple[Literal["read"], ...], *_OPERATIONS] = key(
        ("read",), "live", doc="What is done with it. Absent = all operations of the scope."
    )


@frozen
class CallRule(RuleTable):
    """A rule about tools or about models."""

    operations: Annotated[tuple[Literal["call"], ...], *_OPERATIONS] = key(
        ("call",), "live", doc="What is done with it. Absent = all operations of the scope."
    )


@frozen
class AgentRule(RuleTable):
    """A rule about other agents."""

    operations: Annotated[tuple[AgentOperation, ...], *_OPERATIONS] = key(
        ("spawn", "message", "signal"),
        "live",
        doc="What is done with it. Absent = all operations of the scope.",
    )


@frozen
class PolicyTable:
    """Rules over those of `base`. A scope starts as deny, takes the rules of `base`, then its own
    in order; the last rule that matches decides.
    """

    base: Name = key("sandboxed", "live", doc="Built-in profile or policy name.")
    fs: tuple[FsRule, ...] = key(
        (),
        "live",
        doc="Files: paths, with $WORKSPACE, $TMP, $TOOLCHAIN; `/**` at the end = all below.",
    )
    net: tuple[NetRule, ...] = key(
        (),
        "live",
        doc="Network: hosts, `*.host`, IP, CIDR, each with `:port`; $EGRESS. For tcp: a "
        "port number.",
    )
    exec: tuple[ExecRule, ...] = key(
        (), "live", doc="Programs: as fs, or a bare command name; $COMMAND."
    )
    env: tuple[EnvRule, ...] = key((), "live", doc="Variables: a name, `PREFIX_*`, $ENV.")
    tool: tuple[CallRule, ...] = key((), "live", doc="Tools: a name, `group/*`, `*`.")
    llm: tuple[CallRule, ...] = key(
        (), "live", doc="Models: provider, provider/model-glob, $PROVIDER."
    )
    agent: tuple[AgentRule, ...] = key(
        (), "live", doc="Other agents: a name, `prefix-*`, $CHILDREN."
    )


SCOPES = ("fs", "net", "exec", "env", "tool", "llm", "agent")
