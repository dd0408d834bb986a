"""The program gateway, as supervisord starts and ends it."""

import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.api_box import api_plan
from support.gateway_box import GatewayBox

from agentbox.plan.network import gateway_port


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayBox]:
    with GatewayBox(tmp_path_factory.mktemp("box")) as running:
        yield running


def test_a_path_of_nobody_is_told_what_there_is(box: GatewayBox) -> None:
    """404 and a sentence; a prefix counts with its slash only."""
    for path in ("/", "/rpcs", "/livez"):
        response = httpx.get(f"http://127.0.0.1:{box.port}{path}")
        assert response.status_code == 404
        assert "/rpc" in response.json()["error"]


def test_only_loopback_is_bound(box: GatewayBox) -> None:
    """Another address of this machine has no such port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    bound = {row[1] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == box.port}
    assert bound == {f"0100007F:{box.port:04X}"}


@pytest.mark.timed
def test_a_silent_stranger_is_cut(box: GatewayBox) -> None:
    """A client that connects and sends nothing keeps the connection for five seconds and no longer."""
    with socket.create_connection(("127.0.0.1", box.port)) as unauthenticated:
        unauthenticated.settimeout(8)
        began = time.monotonic()
        assert unauthenticated.recv(1) == b""
        assert 4 < time.monotonic() - began < 7


@pytest.mark.timed
def test_a_thousand_that_say_nothing_hold_up_nobody(box: GatewayBox) -> None:
    """The oldest are closed: a request is answered at once meanwhile, and the program has no more
    descriptors than its limit."""
    silent = [socket.create_connection(("127.0.0.1", box.port)) for _ in range(900)]
    began = time.monotonic()
    assert httpx.get(f"http://127.0.0.1:{box.port}/").status_code == 404
    assert time.monotonic() - began < 1
    assert len(list(Path(f"/proc/{box.pid}/fd").iterdir())) < 256 + 50
    for one in silent:
        one.close()


def test_its_state_is_its_own(box: GatewayBox) -> None:
    """Used budgets are stored in a directory that is closed to others."""
    assert stat.S_IMODE((box.paths.state / "gateway").stat().st_mode) == 0o700


@pytest.mark.timed
def test_it_ends_within_its_stop_budget_whoever_is_connected(tmp_path: Path) -> None:
    """SIGTERM: exit code 0 within the 2 s that supervisord allows, the ready file removed;
    restarted at once it listens."""
    with GatewayBox(tmp_path) as box, socket.create_connection(("127.0.0.1", box.port)):
        began = time.monotonic()
        assert box.stop() == 0
        assert time.monotonic() - began < 2
        assert not (box.paths.ready_dir / "gateway").exists()
        box.start()
        box.kill()
        began = time.monotonic()
        box.start()
        assert time.monotonic() - began < 1.5


def test_a_taken_port_is_told_in_a_sentence(box: GatewayBox, tmp_path: Path) -> None:
    """Exit code 7, and the port in use is named."""
    second = GatewayBox(tmp_path, api=box.plan.api)
    with pytest.raises(RuntimeError, match=f"cannot listen on 127.0.0.1:{box.port}"):
        second.start()
    assert second.process is not None
    assert second.process.wait() == 7


def test_boxes_of_the_process_engine_do_not_meet() -> None:
    """Three above the API's port, or the next that the plan does not use itself; in a container always 9093."""
    plan = api_plan()
    assert gateway_port(plan, in_container=True) == 9093
    assert gateway_port(plan, in_container=False) == plan.api.port + 3
