"""The API in a real box below a prefix: real boot, supervisord, seal, agent-host."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from helpers import read_all, sh, until
from raw import ask
from sealed_box import TOKEN, Sealed, plan, started
from support.api_box import SLOTS
from support.prefix_box import PrefixBox

from agentbox.plan.model import Plan
from agentbox.sandbox.canary.canary import RULES


@pytest.fixture
def sealed() -> Iterator[Sealed]:
    with started(plan()) as running:
        yield running


@pytest.fixture(scope="module")
def shared_box() -> Iterator[Sealed]:
    """One for the tests that change nothing."""
    with started(plan()) as running:
        yield running


def test_a_sealed_box_is_ready_and_says_why(shared_box: Sealed) -> None:
    """The body of a ready answer, member by member; the evidence is the sentinel's own hash."""
    body = ask(shared_box.plan.api.port, "GET /ready HTTP/1.1").json()
    members = "ready since requirements degraded boot_id plan_digest checked_at evidence"
    assert list(body) == members.split()
    assert body["requirements"] == [
        "bootstrap.done",
        "adapters:healthy",
        "paths:accessible",
        "sandbox:proven",
    ]
    assert (
        body["evidence"]["sandbox"]["passed"] == body["evidence"]["sandbox"]["rules"] == len(RULES)
    )
    assert body["plan_digest"] == shared_box.plan.digest
    completed = shared_box.box.events("BootstrapCompleted")[-1]
    assert body["evidence"]["sentinel_sha256"] == completed["sentinel_sha256"]
    # Ready waits for what is required; a slot that is not may still be opening.
    until(lambda: shared_box.client.health().status == "ok")
    assert shared_box.client.health().programs["agent-host"] == "RUNNING"
    meta = shared_box.client.meta()
    assert meta.boot["id"] == body["boot_id"]
    assert meta.boot["elapsed_seconds"] > 0


def test_the_boot_is_in_the_journal_once(sealed: Sealed) -> None:
    """Each line of events.jsonl is an event `boot.*`, in order; the seal has the sentinel's hash; a restart adds none."""

    def journal() -> list[dict[str, object]]:
        return list(
            sealed.client.call("read_events", query={"types": "boot.*", "limit": 1000})["events"]
        )

    sealed_event = until(lambda: [event for event in journal() if event["type"] == "boot.sealed"])[
        0
    ]
    assert (
        sealed_event["data"]["sentinel_sha256"]
        == sealed.box.events("BootstrapCompleted")[-1]["sentinel_sha256"]
    )
    types = [event["type"] for event in journal()]
    assert types[0] == "boot.bootstrap_started"
    assert types.count("boot.bootstrap_started") == 1
    old = sealed.pid("management-api")
    os.kill(old, signal.SIGKILL)
    until(lambda: sealed.pid("management-api") not in (0, old))
    sealed.box.wait_until(sealed.ready, 10, "ready again")
    assert [event["type"] for event in journal()].count("boot.bootstrap_started") == 1
    assert [event["type"] for event in journal()].count("boot.sealed") == 1


def test_a_changed_sentinel_unreadies_also_after_a_restart(sealed: Sealed) -> None:
    """The journal's hash is authoritative: a restarted API does not accept an altered sentinel."""
    until(lambda: sealed.client.call("read_events", query={"types": "boot.sealed"})["events"])
    document = json.loads(sealed.box.paths.sentinel.read_bytes())
    sealed.box.paths.sentinel.unlink()
    sealed.box.paths.sentinel.write_text(json.dumps({**document, "elapsed_seconds": 0.001}))
    until(lambda: sealed.client.ready().missing == ("bootstrap.done sentinel",))
    os.kill(sealed.pid("management-api"), signal.SIGKILL)
    until(lambda: "bootstrap.done sentinel" in _missing(sealed))


def _missing(sealed: Sealed) -> tuple[str, ...]:
    try:
        return sealed.client.ready().missing
    except Exception:  # noqa: BLE001 - the API is being restarted
        return ()


def test_a_dead_program_unreadies_and_returns(sealed: Sealed) -> None:
    """SIGKILL of agent-host: the exact string within 5 s, ready again with the same boot id."""
    boot_id = sealed.client.ready().boot_id
    os.kill(sealed.pid("agent-host"), signal.SIGKILL)
    missing = until(lambda: sealed.client.ready().missing, 5)
    assert any(
        text.startswith(("program:agent-host not running", "adapter:orchestrator not healthy"))
        for text in missing
    )
    sealed.box.wait_until(sealed.ready, 20, "ready again")
    assert sealed.client.ready().boot_id == boot_id
    assert sealed.box.events("ReadinessChanged")


@pytest.mark.timed
def test_a_shutdown_is_marked_clean(sealed: Sealed) -> None:
    """SIGTERM of PID 1: agents end, the bead records it, ShutdownCompleted is printed, the mark is
    clean. The API asks every agent to end, also those without a task, before it exits; the recorded
    exit of each is the kernel's."""
    task_id = sealed.client.submit_task(sh("sleep 300")).task_id
    lone = sealed.client.call("spawn", body=sh("sleep 300"))["handle"]["agent_id"]
    until(lambda: sealed.client.get_task(task_id).agent_id)
    assert sealed.box.stop() == 0
    assert sealed.box.events("ShutdownStarted")
    assert sealed.box.events("ShutdownCompleted")[-1]["drained_ms"] < 10_000
    assert json.loads(sealed.box.paths.boot_current.read_bytes())["state"] == "clean"
    sealed.start()
    assert sealed.client.meta().boot["previous_shutdown"] == "clean"
    task = sealed.client.get_task(task_id)
    assert (task.state, task.note) == ("failed", "the box was shut down while it ran")
    assert task.exit is not None
    assert (task.exit["reason"], task.exit["signal"]) == ("terminated", "SIGTERM")
    told: list[dict[str, Any]] = []

    def both_ends_are_told() -> bool:
        """Events that agent-host recorded while the API was stopping are journalled after the next
        start."""
        told[:] = sealed.client.call("read_events", query={"types": "agent.*", "limit": 1000})[
            "events"
        ]
        return {task.agent_id, lone} <= {
            one["agent_id"] for one in told if one["type"] == "agent.exited"
        }

    until(both_ends_are_told)
    for agent in (task.agent_id, lone):
        asked, *_ = [
            one
            for one in told
            if one["type"] == "agent.terminate.requested" and one["data"]["agent_id"] == agent
        ]
        (ended,) = [
            one for one in told if one["type"] == "agent.exited" and one["agent_id"] == agent
        ]
        assert asked["ts"] <= ended["data"]["exit"]["at"]
        assert ended["data"]["exit"]["reason"] == "terminated"


@pytest.mark.timed
def test_a_deaf_agent_holds_up_no_shutdown() -> None:
    """However long a grace the manifest allows: what ignores TERM is killed in time for its bead to be closed."""
    orchestrator = replace(SLOTS["orchestrator"], options={"grace_seconds": 60})
    with started(replace(plan(), slots={**SLOTS, "orchestrator": orchestrator})) as sealed:
        task_id = sealed.client.submit_task(
            sh("trap '' TERM; echo deaf; while :; do sleep 1; done")
        ).task_id
        until(
            lambda: [
                item
                for item in sealed.client.task_logs(task_id, follow=False)
                if getattr(item, "data", b"")
            ]
        )
        assert sealed.box.stop() == 0
        completed = sealed.box.events("ShutdownCompleted")[-1]
        assert completed["tasks_left"] == 0
        assert 5000 <= completed["drained_ms"] < 7000
        sealed.start()
        task = sealed.client.get_task(task_id)
        assert task.exit is not None
        assert (task.exit["reason"], task.exit["signal"]) == ("terminated", "SIGKILL")


def test_a_drain_is_asked_for(sealed: Sealed) -> None:
    """POST /v1/drain returns 202 at once; /ready reports `draining`; /livez still answers; the
    shutdown is clean."""
    assert sealed.client.drain().state == "draining"
    until(lambda: "draining" in sealed.client.ready().missing)
    sealed.box.wait_for_event("ShutdownCompleted")
    assert sealed.client.livez().live is True
    assert sealed.client.health().status == "draining"
    assert sealed.box.stop() == 0
    assert json.loads(sealed.box.paths.boot_current.read_bytes())["state"] == "clean"
    assert len(sealed.box.events("ShutdownCompleted")) == 1


def test_stopping_the_api_alone_ends_no_agent(sealed: Sealed) -> None:
    """supervisord restarts the API with SIGTERM: the agent and its task continue."""
    task_id = sealed.client.submit_task(sh("echo one; sleep 3; echo two; exit 6")).task_id
    until(lambda: sealed.client.get_task(task_id).agent_id)
    sealed.box.supervisor().restart("management-api")
    items, task = read_all(sealed.client, task_id)
    assert b"".join(item.data for item in items if item.kind == "stdout") == b"one\ntwo\n"
    assert task.exit is not None
    assert task.exit["code"] == 6
    assert sealed.box.events("ShutdownCompleted") == []


def test_metrics_tell_the_boot(shared_box: Sealed) -> None:
    """Phases in seconds, starts by program, readiness and each requirement."""
    port = shared_box.plan.observability.metrics_port

    def samples() -> dict[str, float]:
        lines = ask(port, "GET /metrics HTTP/1.1").body.decode().splitlines()
        return {
            line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in lines
            if not line.startswith("#")
        }

    until(lambda: any(name.startswith("agentbox_boot_seconds{") for name in samples()))
    until(lambda: samples().get('agentbox_program_starts_total{program="agent-host"}') == 1)
    assert samples()["agentbox_ready"] == 1
    assert samples()['agentbox_requirement{name="sentinel"}'] == 1
    assert samples()['agentbox_ready_transitions_total{to="ready"}'] == 1
    assert samples()["agentbox_boot_previous_unclean"] == 0


def hooked(env: dict[str, str]) -> tuple[PrefixBox, Plan]:
    """A box of a test image, started with hooks."""
    box = PrefixBox()
    made = box.install(replace(plan(), test_hooks=True))
    box.start({"BOX_TOKEN": TOKEN, **env})
    return box, made


def test_a_required_orchestrator_that_fails_ends_the_boot() -> None:
    """The API logs which slot failed and exits; nothing is ever sealed."""
    box, _ = hooked({"AGENTBOX_TEST_FAIL_SLOT": "orchestrator"})
    with box:
        box.wait_until(
            lambda: "the required slot orchestrator" in box.log(), description="the sentence"
        )
        box.wait_until(lambda: box.events("BootstrapFailed"), description="the seal gives up")
        assert not box.paths.sentinel.exists()


def test_a_slow_slot_holds_ready_and_not_livez() -> None:
    """beads delayed by 2 s: sealed and alive meanwhile, degraded, then healthy."""
    box, made = hooked({"AGENTBOX_TEST_DELAY_SLOT": "beads:2"})
    with box:
        box.wait_for_event("BootstrapCompleted")
        assert ask(made.api.port, "GET /livez HTTP/1.1").status == 200
        box.wait_until(lambda: ask(made.api.port, "GET /ready HTTP/1.1").status == 200, 10, "ready")
        box.wait_until(
            lambda: ask(made.api.port, "GET /health HTTP/1.1").json()["status"] == "ok", 10, "whole"
        )


def test_a_second_box_on_the_volume_is_told(shared_box: Sealed) -> None:
    """Another API on the same state: exit 7 and a sentence; the first one is not disturbed."""
    env = {"AGENTBOX_PREFIX": str(shared_box.box.paths.prefix), "PATH": "/usr/bin:/bin"}
    argv = [sys.executable, "-I", "-m", "agentbox.api"]
    done = subprocess.run(argv, env=env, capture_output=True, timeout=20, check=False)
    assert done.returncode == 7
    assert b"another box has it locked" in done.stderr
    assert shared_box.ready()
