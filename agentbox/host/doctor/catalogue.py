"""All checks in display order: engine, kernel, resources, stale files, the box."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from agentbox.core.errors import AgentboxError
from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult, DoctorReport
from agentbox.host.doctor.checks import (
    cgroups,
    clocks,
    compose,
    confinement,
    disk,
    docker,
    kernel,
    landlock,
    limits,
    memory,
    namespaces,
    nix,
    ports,
    posture,
    seccomp,
    stale_files,
    state_directory,
)


@dataclass(frozen=True)
class Check:
    """One check; `name` is the prefix of its result names."""

    name: str
    title: str
    run: Callable[[CheckContext], Iterable[CheckResult]]


def _from_module(module: ModuleType) -> Check:
    return Check(module.NAME, module.TITLE, module.run_check)


CHECKS: Final = tuple(
    map(
        _from_module,
        (
            *(docker, compose, nix, kernel, landlock, seccomp, confinement, namespaces, cgroups),
            *(limits, memory, disk, ports, clocks, state_directory, stale_files, posture),
        ),
    )
)


def run_checks(host: CheckContext, checks: Iterable[Check] = CHECKS) -> DoctorReport:
    """Runs every check; a failing one yields `unknown` and stops no other."""
    selected = tuple(checks)
    return DoctorReport(
        "doctor", {check.name: check.title for check in selected}, tuple(_results(host, selected))
    )


def _results(host: CheckContext, checks: Iterable[Check]) -> Iterator[CheckResult]:
    for check in checks:
        try:
            yield from check.run(host)
        except AgentboxError as error:
            yield CheckResult(
                check=check.name,
                subject="asked",
                state="unknown",
                message=error.message,
                advice=error.hint,
            )
        except OSError as error:
            yield CheckResult(
                check=check.name, subject="asked", state="unknown", message=str(error)
            )
