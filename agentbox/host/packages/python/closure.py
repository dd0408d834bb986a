"""The closure of a set of wheels under the target's markers; pip evaluates markers with its own
Python.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agentbox.host.packages.errors import ResolveError
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import PipConfig
from agentbox.host.packages.python.pip_report import ResolvedWheel, explain_error, resolve_wheels
from agentbox.host.packages.python.target import Target

_ROUNDS = 12


class UnmetRequirements(Exception):
    """Requirements of the target that pip's result lacks."""

    def __init__(self, requirements: Sequence[str]) -> None:
        super().__init__(", ".join(requirements))
        self.requirements = list(requirements)


def resolve_closure(
    config: PipConfig,
    index: Index,
    target: Target,
    requested: Sequence[str],
    pins: Mapping[str, str],
    unused: Mapping[str, Sequence[str]],
) -> dict[str, ResolvedWheel]:
    """Return exactly the wheels that the target needs, by name. Raises ResolveError, FetchError.

    `unused` lists, per distribution, dependencies to leave out.
    """
    roots = [Requirement(text) for text in requested]
    for root in roots[:1]:
        index.files(root.name)  # reports "no network" where pip would report "no such project"
    requirements = [without_marker(root) for root in roots if target.requires(root)]
    for _ in range(_ROUNDS):
        try:
            resolved = resolve_wheels(config, target, requirements, pins, unused)
        except ResolveError as error:
            raise explain_error(error, index) from error
        try:
            return {name: resolved[name] for name in reachable(resolved, roots, target)}
        except UnmetRequirements as unmet:
            requirements += unmet.requirements
    raise ResolveError(
        f"cannot resolve Python packages for {target.arch}: no result after {_ROUNDS} rounds"
    )


def reachable(
    resolved: Mapping[str, ResolvedWheel], roots: Iterable[Requirement], target: Target
) -> frozenset[str]:
    """Return the names that these roots need on the target. Raises UnmetRequirements if one is
    missing or has a wrong version.
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [root for root in roots if target.requires(root)]
    unmet: dict[str, None] = {}
    while todo:
        requirement = todo.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if name not in resolved or not requirement.specifier.contains(
            resolved[name].version, prereleases=True
        ):
            unmet[without_marker(requirement)] = None
        elif (name, extras) not in seen:
            seen.add((name, extras))
            todo += _requirements_of(resolved[name], extras, target)
    if unmet:
        raise UnmetRequirements(sorted(unmet))
    return frozenset(name for name, _ in seen)


def without_marker(requirement: Requirement) -> str:
    """Return the requirement without its marker, which was already evaluated for the target."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def _requirements_of(
    wheel: ResolvedWheel, extras: frozenset[str], target: Target
) -> Iterator[Requirement]:
    return (requirement for requirement in wheel.requires if target.requires(requirement, extras))
