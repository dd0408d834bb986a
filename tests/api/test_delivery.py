"""What a box that delivers its journal reports about it: `/health` (a state), the gauges, `agentbox
events delivery`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from events_sink import GenericSink, generic_sink
from helpers import until
from support.api_box import SLOTS, TOKEN, ApiBox

from agentbox.client import BoxClient
from agentbox.host.engines.state import BoxRecord, BoxState
from agentbox.plan.model import SlotPlan


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[GenericSink]:
    with generic_sink(tmp_path / "sink") as made:
        yield made


@pytest.fixture
def sender(tmp_path: Path, sink: GenericSink) -> Iterator[ApiBox]:
    events = SlotPlan(
        use="external-http", required=False, options={"endpoint": sink.url, "fsync": "group"}
    )
    slots = {**SLOTS, "events": events, "orchestrator": SlotPlan(use="off", required=False)}
    with ApiBox(tmp_path / "box", orchestrator=False, slots=slots) as made:
        yield made


def delivery_command(
    box: ApiBox, tmp_path: Path, *words: str
) -> "subprocess.CompletedProcess[str]":
    """`agentbox events delivery`, as a user's shell sees it."""
    (tmp_path / "agentbox.toml").write_text('[meta]\nschema_version = 1\nname = "delivers"\n')
    state = BoxState(tmp_path / "state" / "delivers")
    state.make()
    state.save_record(
        BoxRecord(engine="docker", name="delivers", api_url=box.url, folder=str(state.compose_dir))
    )
    state.token_file.write_text(TOKEN)
    command = [
        sys.executable,
        "-m",
        "agentbox",
        "--manifest",
        str(tmp_path / "agentbox.toml"),
        *words,
        "events",
        "delivery",
    ]
    env = {**os.environ, "AGENTBOX_STATE_DIR": str(tmp_path / "state")}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def becomes(client: BoxClient, **wanted: Any) -> dict[str, Any]:
    """The delivery once it has those members."""

    def matching() -> dict[str, Any] | None:
        found: dict[str, Any] = client.call("event_delivery")
        return found if wanted.items() <= found.items() else None

    found: dict[str, Any] = until(matching, 20)
    return found


def test_what_is_told_of_the_delivery(sender: ApiBox, sink: GenericSink, tmp_path: Path) -> None:
    """Delivered, then a dead letter, then a rejected token: each is reported, everywhere."""
    with sender.client() as client:
        done, head = delivery_command(sender, tmp_path), -1
        while head != (
            head := becomes(client, undelivered=0)["cursor"]
        ):  # a box writes records at its start
            done = delivery_command(sender, tmp_path)
        assert head >= 0
        assert (done.returncode, done.stdout) == (
            0,
            f"delivered up to record {head}; none pending; 0 dead letters\n",
        )

        sink.rule(bad=["bad"])
        client.call(
            "append_events", body={"events": [{"type": "test.bad", "data": {}, "subject": "bad"}]}
        )
        letter = becomes(client, dead=1, undelivered=0)["letters"][0]
        assert (letter["type"], letter["status"]) == ("test.bad", 422)
        assert "test.bad" in delivery_command(sender, tmp_path).stdout.splitlines()[1]
        rejected = until(
            lambda: client.call("read_events", query={"types": "journal.delivery.rejected"})[
                "events"
            ]
        )
        assert [event["data"]["seq"] for event in rejected] == [letter["seq"]]

        sink.rule(status=401)
        client.call("append_events", body={"events": [{"type": "test.held", "data": {}}]})
        held = becomes(client, held="the sink responded 401: so says the rule: 401")
        done = delivery_command(sender, tmp_path, "--json")
        assert (done.returncode, json.loads(done.stdout)["cursor"]) == (1, held["cursor"])
        until(lambda: client.health().adapters["events"].state == "degraded", 30)
        metrics = httpx.get(f"{sender.metrics_url}/metrics").text
        assert "agentbox_events_undelivered " in metrics
        assert "agentbox_events_undelivered 0.0" not in metrics
        assert "agentbox_events_dead_letters 1.0" in metrics
        until(lambda: client.ready().degraded == ("events",), 30)
        # no boot ran here, so readiness lacks something else than the slot
        assert not [why for why in client.ready().missing if "events" in why]


def test_a_journal_that_stays_here(client: BoxClient) -> None:
    """No sink is no trouble."""
    found = client.call("event_delivery")
    assert (found["sink"], found["undelivered"], found["letters"]) == (False, 0, [])
