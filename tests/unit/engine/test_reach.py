"""Calls to a docker daemon that may not answer."""

import time
from pathlib import Path

import pytest

from agentbox.host.engines.docker import daemon_status as module
from agentbox.host.engines.docker.daemon_status import LOCAL_SOCKET, query_status


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker client written by the test, with short timeouts."""
    program = tmp_path / "docker"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.3)
    return program


@pytest.mark.timed
@pytest.mark.parametrize(
    ("hosts", "host"), [("", LOCAL_SOCKET), ("tcp://far:2375", "tcp://far:2375")]
)
def test_a_client_that_hangs_costs_no_more_than_its_time(
    client: Path, monkeypatch: pytest.MonkeyPatch, hosts: str, host: str
) -> None:
    """Neither the daemon nor the client's context answers: `silent`, at the default address."""
    monkeypatch.setenv("DOCKER_HOST", hosts)
    client.write_text("#!/bin/sh\nexec sleep 60\n")
    began = time.monotonic()
    found = query_status()
    assert (found.state, found.host) == ("silent", host)
    assert time.monotonic() - began < 10


def test_the_context_names_the_address(client: Path) -> None:
    """The context reported by the client is used."""
    client.write_text("#!/bin/sh\n[ $1 = context ] && echo unix:///x.sock && exit\necho 1.0\n")
    found = query_status()
    assert (found.state, found.host) == ("answers", "unix:///x.sock")
