"""What a new agent is given: its policy resolved, and a grant for each rule of it."""

from collections.abc import Mapping, Sequence

from agentbox.adapters.errors import SpawnError
from agentbox.adapters.orchestrator.contract import AgentSpec
from agentbox.agents.config import HostConfig
from agentbox.grants.holding import Grant, Holding
from agentbox.grants.policies import Resolved, bound, resolve
from agentbox.grants.rights import rights_of
from agentbox.manifest.patterns import PatternError, parse
from agentbox.manifest.profiles import ChainError, profiles

DEFAULT_PROFILE = "sandboxed"


def resolved(spec: AgentSpec, config: HostConfig) -> Resolved:
    """The policy that its profile names. Raises SpawnError (stage profile)."""
    try:
        found = resolve(spec.profile, config.policies)
    except (ChainError, PatternError) as error:
        raise _unknown(spec, config) from error
    if found.unrestricted and not config.dev:
        raise _unknown(spec, config)
    return found


def holding_of(spec: AgentSpec, config: HostConfig) -> Holding:
    """Of a program given ad hoc: what its spec sets in its environment is its `$ENV`. Raises SpawnError (stage profile)."""
    found = resolved(spec, config)
    bindings: Mapping[str, Sequence[str]] = {
        "$PROVIDER": (),
        "$CHILDREN": (),
        "$ENV": tuple(filter(_is_name, spec.env)),
    }
    try:
        policy = bound(found, bindings, config.reach.get("allow", ()))
    except PatternError as error:
        raise SpawnError(f"cannot start {spec.name}: {error}", stage="profile") from error
    return Holding(root=found.root, grants=tuple(Grant(right=right) for right in rights_of(policy)))


def _is_name(text: str) -> bool:
    try:
        parse("env", text)
    except PatternError:
        return False
    return True


def _unknown(spec: AgentSpec, config: HostConfig) -> SpawnError:
    known = [name for name in (*profiles(), *config.policies) if config.dev or name != "unrestricted"]
    return SpawnError(
        f"cannot start {spec.name}: the profile {spec.profile!r} is unknown; known: {', '.join(known)}", stage="profile"
    )
