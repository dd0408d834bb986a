"""A boot in which everything is as it must be, with the real supervisord."""

import json
import os
import stat
from pathlib import Path

import pytest
from support.prefix_box import PrefixBox, default_programs, make_plan

from agentbox.box.supervision.boot_event_log import EVENTS
from agentbox.box.supervision.boot_record import read_boot_record
from agentbox.box.supervision.boot_timeline import boot_timeline
from agentbox.box.supervision.missing_protections import PROCESS_ENGINE_LACKS
from agentbox.box.supervision.sentinel import DIGESTS
from agentbox.core.canonical import canonical_json, digest
from agentbox.core.linux import procfs

COMMON = {"level", "time", "seq", "boot_id", "agentbox.stage", "event", "plan_digest", "image_ref"}
IMAGE = f"agentbox@sha256:{'a' * 64}"


@pytest.fixture
def sealed(box: PrefixBox, port: int) -> PrefixBox:
    box.install(make_plan(port, default_programs(port)))
    box.start(
        {
            "AGENTBOX_IMAGE_REF": IMAGE,
            "BOX_TOKEN": "a-real-token",
            "AGENTBOX_CLOSURE_DIGEST": "sha256:c",
        }
    )
    box.wait_for_event("BootstrapCompleted")
    box.wait_until(lambda: boot_timeline(box.paths))
    return box


def test_stdout_holds_nothing_but_events_of_the_closed_table(sealed: PrefixBox) -> None:
    """Every line is one JSON object with the common fields, and the sequence has no gap."""
    lines = sealed.log().splitlines()
    events = [json.loads(line) for line in lines]
    assert len(events) > 20
    assert all(set(event) >= COMMON and event["event"] in EVENTS for event in events)
    assert all(event["agentbox.stage"] == "bootstrap" for event in events)
    assert sorted(event["seq"] for event in events) == list(range(1, len(events) + 1))
    assert {event["boot_id"] for event in events} == {events[0]["boot_id"]}


def test_the_file_has_the_same_events_as_stdout(sealed: PrefixBox) -> None:
    """The file has the same events as stdout."""
    kept = [json.loads(line) for line in sealed.paths.boot_events.read_text().splitlines()]
    assert sorted(kept, key=lambda event: event["seq"]) == sorted(
        sealed.events(), key=lambda event: event["seq"]
    )


@pytest.mark.timed
def test_phases_run_in_order_and_within_their_budgets(sealed: PrefixBox) -> None:
    """Phases run in order and within their budgets."""
    rows = [json.loads(line) for line in sealed.paths.phases.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["0", "0.5", "1", "2", "3", "4", "5", "B6", "B8"]
    assert sum(row["ms"] for row in rows[:7]) < 400


def test_the_sentinel_is_canonical_and_tells_the_truth(sealed: PrefixBox) -> None:
    """Each field against the file, the process or the kernel that it speaks of."""
    data = sealed.paths.sentinel.read_bytes()
    sentinel = json.loads(data)
    assert canonical_json(sentinel) == data
    assert set(sentinel["digests"]) == set(DIGESTS)
    assert sentinel["digests"]["supervisord"] == digest(sealed.paths.supervisord_conf.read_bytes())
    assert sentinel["digests"]["probes"] == digest(sealed.paths.probes.read_bytes())
    assert sentinel["digests"]["manifest"] == digest(sealed.paths.manifest.read_bytes())
    assert sentinel["digests"]["image"] == f"sha256:{'a' * 64}"
    assert sentinel["digests"]["closure"] == "sha256:c"
    assert sentinel["kernel"]["release"] == os.uname().release
    assert sentinel["boot_id"] == sealed.wait_for_event("BootstrapCompleted")["boot_id"]
    assert sentinel["previous"] == {"boot_id": None, "sentinel_sha256": None, "shutdown": "first"}
    assert sentinel["posture"]["no_new_privs"] is True
    assert sentinel["posture"]["caps"] == "0" * 16
    running = {row["name"]: row for row in sentinel["programs"]}
    for name in ("management-api", "agent-host"):
        assert procfs.start_ticks(running[name]["pid"]) == running[name]["start_ticks"]
        assert 0 < running[name]["ready_seconds"] <= sentinel["elapsed_seconds"]
    assert running["bootstrap"]["required"]
    assert running["bootstrap"]["start_ticks"]
    assert not running["bootstrap-seal"]["required"]


def test_completed_names_the_sentinel_and_its_hash(sealed: PrefixBox) -> None:
    """Completed names the sentinel and its hash."""
    event = sealed.wait_for_event("BootstrapCompleted")
    assert event["sentinel"] == str(sealed.paths.sentinel)
    assert event["sentinel_sha256"] == digest(sealed.paths.sentinel.read_bytes())
    assert event["sentinel_sha256"] == digest(sealed.paths.boot_copy(event["boot_id"]).read_bytes())


@pytest.mark.timed
def test_the_seal_adds_no_polling_delay(sealed: PrefixBox) -> None:
    """From the last program's notification to the sentinel: far below a tick of supervisord (1 s)."""
    timeline = boot_timeline(sealed.paths)
    assert timeline is not None
    assert timeline.sealed_ms is not None
    last = max(span.ready_ms or 0 for span in timeline.programs)
    assert timeline.sealed_ms - last < 200


@pytest.mark.timed
def test_the_waker_ends_supervisords_first_sleep_and_is_reaped(sealed: PrefixBox) -> None:
    """The first spawn is well before the second that supervisord sleeps; no zombie remains."""
    timeline = boot_timeline(sealed.paths)
    assert timeline is not None
    assert timeline.exec_ms is not None
    spawned = min(span.spawn_ms or 0 for span in timeline.programs)
    assert spawned - timeline.exec_ms < 700
    assert sealed.process is not None
    children = (
        Path(f"/proc/{sealed.process.pid}/task/{sealed.process.pid}/children").read_text().split()
    )
    assert {pid for pid in children if not procfs.is_alive(int(pid))} == set()


def test_tokens_and_credentials_are_closed_files_and_no_secret_is_in_the_environment(
    sealed: PrefixBox,
) -> None:
    """Tokens and credentials are closed files and no secret is in the environment."""
    paths = sealed.paths
    for path in (paths.token("supervisor"), paths.token("agent-host"), paths.supervisor_auth):
        assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert not paths.token("gateway").exists()
    assert (paths.moved_secrets / "BOX_TOKEN").read_text() == "a-real-token"
    assert sealed.wait_for_event("ApiTokenResolved")["source"] == "env"
    states = sealed.supervisor().states()
    for program in ("management-api", "agent-host"):
        assert b"a-real-token" not in Path(f"/proc/{states[program].pid}/environ").read_bytes()
    assert "a-real-token" not in sealed.log()


def test_the_record_lists_the_protections_that_are_absent(sealed: PrefixBox) -> None:
    """The record lists the protections that are absent."""
    record = read_boot_record(sealed.paths)
    assert record is not None
    assert record.protections_absent == PROCESS_ENGINE_LACKS
    assert record.posture.drift == ()


def test_an_empty_workspace_explains_itself(sealed: PrefixBox) -> None:
    """An empty workspace explains itself."""
    assert "workspace" in (sealed.paths.workspace / "README.agentbox.md").read_text()


def test_hints_for_shells_hold_no_secret(sealed: PrefixBox) -> None:
    """Hints for shells contain no secret."""
    text = sealed.paths.runtime_hints.read_text()
    assert "AGENTBOX_URL=http://127.0.0.1:" in text
    assert "a-real-token" not in text


def test_supervisord_ends_with_the_whole_box(sealed: PrefixBox) -> None:
    """SIGTERM to PID 1 stops every program; exit code 0."""
    pids = [state.pid for state in sealed.supervisor().states().values() if state.pid]
    assert pids
    assert sealed.stop() == 0
    assert [pid for pid in pids if procfs.is_alive(pid)] == []
