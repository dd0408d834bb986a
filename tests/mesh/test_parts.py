"""Parts of a client, each on its own: what an address may be, clocks that differ, how long it waits."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.mesh import Endpoint
from agentbox.core import clock
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.manifest.slot_options import HttpOptions, PostgresBeadsOptions
from agentbox.mesh.client import backoff
from agentbox.mesh.client.clock_skew import ClockSkew
from agentbox.mesh.client.session_slots import SessionSlots
from agentbox.mesh.metrics import ClientMetrics

HOST = "https://mesh.example:9443"


class Container:
    """Records its input."""

    def __init__(self) -> None:
        self.given: dict[str, SlotConfig] = {}

    def reconfigure(self, slot: Any, cfg: SlotConfig) -> None:
        self.given[slot] = cfg

    async def wait_applied(self, slot: Any) -> None:
        """Nothing waits."""

    def is_down(self, slot: Any) -> bool:
        return False


def given_slots(tmp_path: Path, container: Container) -> SessionSlots:
    """Beads and pods from a session, memory with an address of its own."""
    own = {"beads": "", "pods": "", "memory": "https://own.example"}
    configs: Any = {
        slot: SlotConfig(
            slot=slot,
            use="external-http",
            required=False,
            paths=Paths(tmp_path),
            options=HttpOptions(endpoint=url),
        )  # type: ignore[arg-type]
        for slot, url in own.items()
    }
    return SessionSlots(
        lambda: configs, container, host_url=HOST, ca_file="/ca.pem", box_name="urn:agentbox:box:x"
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://elsewhere.example/", "not on the host itself"), ("https://me:secret@mesh.example:9443", "contains a credential"),
        ("http://mesh.example:9443", "uses plain http"), ("ftp://mesh.example", "not an http(s) URL"), ("", "not an http(s) URL"),
    ],
)  # fmt: skip
async def test_F06_an_address_is_refused_for_its_slot_alone(
    tmp_path: Path, url: str, why: str
) -> None:
    """The other slot gets its own, with token and trust anchor; neither sentence nor status has a credential."""
    container = Container()
    slots = given_slots(tmp_path, container)
    refused = slots.apply(
        {
            "beads": Endpoint(impl="x", url=url),
            "pods": Endpoint(impl="x", url=f"{HOST}/p/"),
        },
        "a-token",
    )
    assert why in refused["beads"]
    assert "secret" not in str(slots.status())
    with pytest.raises(SlotUnavailable, match="host's address"):
        await slots.before_open("beads")
    await slots.before_open("pods")
    assert container.given.keys() == {"pods"}
    pods = container.given["pods"]
    assert (pods.options.endpoint, pods.options.ca_file, pods.secrets) == (
        f"{HOST}/p/",
        "/ca.pem",
        {"token": "a-token"},
    )
    assert "a-token" not in repr(pods)


async def test_a_slot_without_a_session_says_so(tmp_path: Path) -> None:
    """And one that is not offered; one with an address of its own needs neither. The end removes
    all."""
    container = Container()
    slots = given_slots(tmp_path, container)
    with pytest.raises(SlotUnavailable, match="no mesh session"):
        await slots.before_open("beads")
    await slots.before_open("memory")
    slots.apply({"pods": Endpoint(impl="x", url=f"{HOST}/p/")}, "t")
    with pytest.raises(SlotUnavailable, match="the host does not offer beads"):
        await slots.before_open("beads")
    slots.drop()
    assert container.given["pods"].options.endpoint == ""
    assert slots.status() == {"beads": "no mesh session", "pods": "no mesh session"}


async def test_a_database_needs_no_session(tmp_path: Path) -> None:
    """Beads in PostgreSQL have an address of their own: the connection string."""
    cfg = SlotConfig(
        slot="beads",
        use="external-pg",
        required=False,
        paths=Paths(tmp_path),
        options=PostgresBeadsOptions(),
    )
    slots = SessionSlots(
        lambda: {"beads": cfg}, Container(), host_url=HOST, ca_file="/ca.pem", box_name="x"
    )
    await slots.before_open("beads")
    assert (slots.needed, slots.overlay(cfg)) == ((), cfg)


def test_F04_a_clock_that_differs_is_told_once() -> None:
    """Beyond 30 s, in either direction; again after it was near. The gauge has it always."""
    registry, reported = CollectorRegistry(), []
    skew = ClockSkew(
        ClientMetrics(registry), lambda kind, **data: reported.append((kind, round(data["skew_s"])))
    )
    for seconds in (0, 29, 300, 310, 5, -3600):
        with skew.measure() as heard:
            heard(clock.now() + timedelta(seconds=seconds))
    assert reported == [("mesh.clock_skew", 300), ("mesh.clock_skew", -3600)]
    assert round(registry.get_sample_value("agentbox_mesh_clock_skew_seconds") or 0) == -3600


def test_waits_have_jitter_and_bounds() -> None:
    """Backoff grows to a minute and not beyond; the host's Retry-After has priority; after an
    eviction within a second."""
    for failures, most in ((0, 1), (3, 8), (30, 60)):
        waits = [backoff.retry_delay(failures, None) for _ in range(300)]
        assert 0 <= min(waits) < most / 4
        assert most * 3 / 4 < max(waits) <= most
    assert backoff.retry_delay(0, 7.0) == 7.0
    assert backoff.retry_delay(0, 1e9) == backoff.MAX_RETRY_AFTER
    assert all(540 <= backoff.refused_delay() <= 660 for _ in range(100))
    spread = [backoff.rejoin_delay() for _ in range(300)]
    assert min(spread) < 0.1 < 0.9 < max(spread) <= 1
    assert [round(backoff.heartbeat_delay(30, misses) / 30, 1) for misses in (1, 2)] == [0.0, 0.1]
    assert all(27 <= backoff.heartbeat_delay(30, misses) <= 33 for misses in (0, 5, 50))
