"""Ports that are already in use."""

import os
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.plans import plan_of

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.ports import host_ports, listeners, require_free_ports
from agentbox.plan.model import Plan, Port
from agentbox.plan.names import GATEWAY


@pytest.fixture(params=["127.0.0.1", "0.0.0.0", "::1"])
def taken(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A listener of this process."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.socket(family) as made:
        made.bind((request.param, 0))
        made.listen()
        yield made


def plan_with(*ports: Port) -> Plan:
    return replace(plan_of(), ports=ports)


def test_the_program_is_named(taken: socket.socket) -> None:
    """Exit 7 with key, port, pid and command line."""
    address, port = taken.getsockname()[:2]
    asked = "::1" if ":" in address else "127.0.0.1"
    with pytest.raises(AgentboxError) as caught:
        require_free_ports([Port(owner="api.port", name="api", port=port, publish=asked)])
    assert caught.value.exit_code is ExitCode.BUSY
    assert caught.value.message.startswith(
        f"cannot publish api.port = {port}: process {os.getpid()} ("
    )
    assert list(listeners(port)) == [os.getpid()]


def test_a_container_is_named_rather_than_its_proxy(taken: socket.socket) -> None:
    """The engine's answer is used."""
    port = taken.getsockname()[1]
    ours = plan_with(Port(owner="api.port", name="api", port=port, publish=taken.getsockname()[0]))
    with pytest.raises(AgentboxError, match="the box x listens on that port"):
        require_free_ports(ours.ports, find_container=lambda _port: "the box x")
    require_free_ports(ours.ports, [port])


def test_a_free_port_and_an_unpublished_one_pass(taken: socket.socket) -> None:
    """Nothing is raised, and the port is free afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    plan = plan_with(
        Port(owner="a", name="a", port=free, publish="127.0.0.1"),
        Port(owner="b", name="b", port=taken.getsockname()[1], publish=""),
    )
    require_free_ports(plan.ports)
    require_free_ports(plan.ports)


def test_the_port_of_the_gateway_is_asked_for_too() -> None:
    """A box without its own network has the gateway on loopback, three above the API's port: a
    listener there is reported before the start.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        plan = plan_of(f"[api]\nport = {port - 3}\n")
        with pytest.raises(AgentboxError) as caught:
            require_free_ports(row for row in host_ports(plan) if row.owner == GATEWAY)
        assert caught.value.exit_code is ExitCode.BUSY
        assert caught.value.message.startswith(
            f"cannot publish gateway = {port}: process {os.getpid()} ("
        )
        assert caught.value.hint == "Stop it, or give this box another api.port in the manifest."
        require_free_ports(
            row for row in plan.ports if row.owner == GATEWAY
        )  # a container has a network of its own
