"""The closure of a set of wheels under the target's markers: pip evaluates them with the Python that it runs on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agentbox.host.packages.errors import ResolveError
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import PipConfig
from agentbox.host.packages.python.pip_report import Chosen, choose, explain
from agentbox.host.packages.python.target import Target

_ROUNDS = 12


class Unmet(Exception):
    """Requirements that the target has and pip's answer lacks."""

    def __init__(self, requirements: Sequence[str]) -> None:
        super().__init__(", ".join(requirements))
        self.requirements = list(requirements)


def close(
    config: PipConfig,
    index: Index,
    target: Target,
    wanted: Sequence[str],
    pins: Mapping[str, str],
    unused: Mapping[str, Sequence[str]],
) -> dict[str, Chosen]:
    """The wheels that the target needs for `wanted`, none more, by name. Raises ResolveError, FetchError.

    `unused` names, per distribution, dependencies to leave out.
    """
    roots = [Requirement(text) for text in wanted]
    for root in roots[:1]:
        index.files(root.name)  # says "no network" where pip would say "no such project"
    asked = [plain(root) for root in roots if target.needs(root)]
    for _ in range(_ROUNDS):
        try:
            found = choose(config, target, asked, pins, unused)
        except ResolveError as error:
            raise explain(error, index) from error
        try:
            return {name: found[name] for name in reached(found, roots, target)}
        except Unmet as unmet:
            asked += unmet.requirements
    raise ResolveError(f"cannot resolve Python packages for {target.arch}: no end after {_ROUNDS} rounds")


def reached(found: Mapping[str, Chosen], roots: Iterable[Requirement], target: Target) -> frozenset[str]:
    """The names that these roots need on the target. Raises Unmet when one is missing or of a wrong version."""
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [root for root in roots if target.needs(root)]
    unmet: dict[str, None] = {}
    while todo:
        need = todo.pop()
        name, extras = canonicalize_name(need.name), frozenset(need.extras)
        if name not in found or not need.specifier.contains(found[name].version, prereleases=True):
            unmet[plain(need)] = None
        elif (name, extras) not in seen:
            seen.add((name, extras))
            todo += _needed_by(found[name], extras, target)
    if unmet:
        raise Unmet(sorted(unmet))
    return frozenset(name for name, _ in seen)


def plain(requirement: Requirement) -> str:
    """The requirement without its marker, which was evaluated for the target already."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def _needed_by(chosen: Chosen, extras: frozenset[str], target: Target) -> Iterator[Requirement]:
    return (need for need in chosen.requires if target.needs(need, extras))
