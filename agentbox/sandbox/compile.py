"""Compiles a policy into a confinement. Pure: reads no file, and grants nothing that the policy
does not allow.

The kernel takes allow lists. What such a list cannot express (a deny inside of an allowed
directory, a glob) is rejected here, so that nobody relies on it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.linux.landlock import PathRule
from agentbox.core.linux.path_opener import SYSTEM_DIRECTORIES, is_within
from agentbox.policy.patterns.globs import is_glob
from agentbox.policy.patterns.hosts import HostPattern, PortPattern
from agentbox.policy.patterns.paths import PathPattern
from agentbox.policy.policy import Bindings, Policy
from agentbox.policy.policy import Permission as PolicyGrant
from agentbox.sandbox.base_grants import BASE_GRANTS
from agentbox.sandbox.confinement import Confinement

_ACCESS_LETTERS: Final[Mapping[tuple[str, str], str]] = {
    ("fs", "read"): "rl",
    ("fs", "write"): "wm",
    ("exec", "run"): "rx",  # the kernel reads what it executes
}

TOOLCHAIN: Final = SYSTEM_DIRECTORIES
SHARED_MEMORY: Final = PathRule("/dev/shm", "rwm")  # access by name, no listing
_ANYWHERE: Final = HostPattern.parse("*:*")


class UnenforceableRule(AgentboxError):
    """A rule that the kernel cannot enforce."""

    def __init__(self, policy: str, rule: str) -> None:
        super().__init__(
            f"cannot confine an agent by policy {policy}: the kernel cannot enforce {rule}",
            "Allow directories (/path/**) or single files instead of denying parts of them.",
            exit_code=ExitCode.USAGE,
        )


def compile_policy(
    policy: Policy,
    bindings: Bindings,
    *,
    closed: Iterable[str] = (),
    exempt: Iterable[str] = (),
    allow_degraded: Iterable[str] = (),
    door: int = 0,
    closed_ports: Iterable[int] = (),
    target_ports: Iterable[int] = (),
    written: Iterable[str] = (),
) -> Confinement:
    """`bindings`: the values of $WORKSPACE, $TMP, $TOOLCHAIN and $COMMAND. A variable without a
    value grants nothing. `closed`: directories of the control plane; no grant may expose more of
    them than $TMP and `exempt`; checked as text here, and again when each path is opened. The other
    parameters: as in Confinement.

    Names and addresses of `net connect` are enforced by a proxy and open no port here, but `*:*`
    leaves the network open. Raises UnenforceableRule, and PatternError for a binding that is not a
    path.
    """
    bound = policy.with_bindings(bindings)
    protected = _ProtectedDirectories(
        bound.name, tuple(closed), (*bindings.get("$TMP", ()), *exempt)
    )
    letters: dict[tuple[str, bool], str] = {}
    ports: set[int] = set()
    network = False
    for grant in bound.permissions:
        pattern = grant.pattern
        _check_denials(bound, grant)
        if isinstance(pattern, PathPattern) and pattern.root == "":
            key = (protected.check(_path(bound.name, pattern)), pattern.recursive)
            letters[key] = letters.get(key, "") + _ACCESS_LETTERS[grant.scope, grant.operation]
        elif isinstance(pattern, PortPattern):
            ports.add(pattern.port)
        elif pattern == _ANYWHERE:
            network = True
    policy_grants = tuple(
        PathRule(path, _unique_letters(access), below)
        for (path, below), access in sorted(letters.items())
    )
    return Confinement(
        grants=(
            *BASE_GRANTS,
            *((SHARED_MEMORY,) if _writes_workspace(bound, bindings) else ()),
            *policy_grants,
        ),
        ports=None if network else tuple(sorted(ports)),
        door=door,
        closed_ports=tuple(sorted(closed_ports)),
        target_ports=tuple(sorted(target_ports)),
        allow_degraded=tuple(sorted(allow_degraded)),
        closed=protected.directories,
        own=protected.exceptions,
        written=tuple(written),
    )


@dataclass(frozen=True)
class _ProtectedDirectories:
    """The control plane's directories, and those of the agent among them."""

    policy: str
    directories: tuple[str, ...]
    exceptions: tuple[str, ...]

    def check(self, path: str) -> str:
        """Returns the path. Raises UnenforceableRule if the grant would expose a protected
        directory.
        """
        for directory in self.directories:
            if is_within(directory, path) or (
                is_within(path, directory)
                and not any(is_within(path, exception) for exception in self.exceptions)
            ):
                raise UnenforceableRule(
                    self.policy,
                    f"a grant of {path} without {directory}, which belongs to the control plane",
                )
        return path


def _writes_workspace(policy: Policy, bindings: Bindings) -> bool:
    """Whether the policy is `sandboxed` or wider: such an agent may use shared memory by name."""
    return any(policy.decide("fs", "write", f"{path}/x") for path in bindings.get("$WORKSPACE", ()))


def _check_denials(policy: Policy, grant: PolicyGrant) -> None:
    """Raises UnenforceableRule for a grant that another rule partly denies."""
    pattern = grant.pattern
    if (
        (grant.scope, grant.operation) not in _ACCESS_LETTERS
        and not isinstance(pattern, PortPattern)
        and pattern != _ANYWHERE
    ):
        return
    for rule in policy.rules[grant.scope]:
        for denied in () if rule.allow else rule.patterns.get(grant.operation, ()):
            if type(denied) is type(pattern) and denied.overlaps(pattern):
                raise UnenforceableRule(policy.name, f"{grant} without {denied}")


def _path(policy: str, pattern: PathPattern) -> str:
    if any(map(is_glob, pattern.segments)):
        raise UnenforceableRule(policy, f"the glob {pattern}")
    return "/" + "/".join(pattern.segments)


def _unique_letters(letters: str) -> str:
    return "".join(sorted(set(letters)))
