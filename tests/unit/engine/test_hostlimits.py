"""Hosts with fewer resources than the manifest requires."""

import os
import resource
from dataclasses import replace

import pytest
from support.plans import plan_of

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.host_limits import HostLimits, check, docker_limits, process_limits

PLAN = plan_of()


@pytest.mark.parametrize(
    ("host", "key"),
    [
        (HostLimits(cores=1, nofile=1 << 20), "resources.cpus"),
        (HostLimits(64, 64), "resources.nofile"),
    ],
)
def test_the_key_is_named(host: HostLimits, key: str) -> None:
    """Exit 3; no value is clamped."""
    plan = replace(PLAN, resources=replace(PLAN.resources, cpus=2.0, nofile=1024))
    with pytest.raises(AgentboxError, match=rf"cannot set {key} = ") as caught:
        check(plan, host)
    assert caught.value.exit_code is ExitCode.PREREQUISITE


def test_exactly_enough_is_enough() -> None:
    """Values equal to the limits are accepted."""
    check(PLAN, HostLimits(cores=int(PLAN.resources.cpus), nofile=PLAN.resources.nofile))


def test_the_host_is_asked() -> None:
    """Cores and the hard limit of this process; without a reachable daemon, the kernel's limit."""
    assert process_limits() == HostLimits(
        os.cpu_count() or 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    )
    assert docker_limits(3, "unix:///nonexistent").cores == 3
    assert docker_limits(3, "unix:///nonexistent").nofile >= 1024
