"""All checks, in the order in which they are shown: engine, kernel, room, what is left over, the box."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from agentbox.core.errors import AgentboxError
from agentbox.host.doctor.checks import (
    cgroups,
    clocks,
    compose,
    confinement,
    disk,
    docker,
    kernel,
    landlock,
    leftovers,
    limits,
    memory,
    namespaces,
    nix,
    ports,
    posture,
    seccomp,
    state_folder,
)
from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row, Scorecard


@dataclass(frozen=True)
class Check:
    """`name` begins the names of its rows."""

    name: str
    title: str
    look: Callable[[Host], Iterable[Row]]


def _check(module: ModuleType) -> Check:
    return Check(module.NAME, module.TITLE, module.look)


CHECKS: Final = tuple(
    map(
        _check,
        (
            *(docker, compose, nix, kernel, landlock, seccomp, confinement, namespaces, cgroups),
            *(limits, memory, disk, ports, clocks, state_folder, leftovers, posture),
        ),
    )
)


def examine(host: Host, checks: Iterable[Check] = CHECKS) -> Scorecard:
    """Runs every check; one that cannot find out says so and stops no other."""
    asked = tuple(checks)
    return Scorecard("doctor", {check.name: check.title for check in asked}, tuple(_rows(host, asked)))


def _rows(host: Host, checks: Iterable[Check]) -> Iterator[Row]:
    for check in checks:
        try:
            yield from check.look(host)
        except AgentboxError as error:
            yield Row(check=check.name, subject="asked", state="unknown", said=error.message, advice=error.hint)
        except OSError as error:
            yield Row(check=check.name, subject="asked", state="unknown", said=str(error))
