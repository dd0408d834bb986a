"""Live keys that concern agent-host, applied in a real box below a prefix: boot, supervisord, API,
agent-host."""

import base64
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from helpers import sh, until
from support.plans import SYSTEM, lock_of
from support.ports import free_port
from support.prefix_box import PrefixBox
from test_supervised import TOKEN, Sealed

from agentbox.client import ApiError
from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import parse
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.writer import serialize_lock as lock_bytes

PORTS = (free_port(), free_port())


def text(orchestrator: str = "", limits: str = "", beads: str = "") -> bytes:
    """A manifest with these keys of `[adapters.orchestrator]`, `[limits]` and `[adapters.beads]`."""
    port, metrics = PORTS
    return f"""
meta = {{ schema_version = 1, name = "applied" }}
api = {{ port = {port}, token_env = "BOX_TOKEN" }}
observability.metrics_port = {metrics}
adapters = {{ pods.use = "off", memory.use = "off", orchestrator = {{ {orchestrator} }}, beads = {{ {beads} }} }}
limits = {{ {limits} }}
""".encode()


@pytest.fixture
def sealed() -> Iterator[Sealed]:
    """A box whose plan was built from its own manifest and lock."""
    with PrefixBox() as box:
        manifest, features = parse(text(), "agentbox.toml"), load_features()
        lock = lock_of(enabled_features(manifest, features))
        made = build_plan(manifest, features, lock_bytes(lock), lock, SYSTEM)
        plan = box.install(replace(made, probes=()))  # the prefix has no packages
        box.paths.lock.write_bytes(lock_bytes(lock))
        for path in (box.paths.manifest, box.paths.baked_manifest):
            path.write_bytes(text())
        running = Sealed(box, plan)
        running.start()
        yield running
        running.client.close()


def spawned(sealed: Sealed, **more: object) -> str:
    """Deaf to TERM once this returns."""
    spec = sh("trap '' TERM; echo deaf; while :; do sleep 1; done", **more)
    agent_id = str(sealed.client.call("spawn", body=spec)["handle"]["agent_id"])
    assert any(
        event.event == "stdout" for event in sealed.client.stream("stream_agent", {"id": agent_id})
    )
    return agent_id


def most_files(sealed: Sealed) -> int:
    """The open files that an agent may have; 0 while the slot is away."""
    try:
        ran = sealed.client.call(
            "run_once", body={"spec": sh("ulimit -Hn"), "timeout_s": 10}, wait_s=20
        )
    except ApiError as error:
        if error.status != 503:
            raise
        return 0
    return int(base64.b64decode(ran["stdout"]))


def refused(sealed: Sealed, **more: object) -> str:
    """Which key refuses the spawn."""
    with pytest.raises(ApiError) as caught:
        spawned(sealed, **more)
    assert caught.value.code == "quota-exceeded"
    return str(caught.value.problem["config_path"])


def test_bounds_reach_agent_host_without_a_restart(sealed: Sealed) -> None:
    """max_agents, max_depth, grace_seconds and a limit: each takes effect at the next call; agents
    continue; the process stays the same. After it was killed, it uses the same values."""
    keys = [
        "adapters.orchestrator.grace_seconds",
        "adapters.orchestrator.max_agents",
        "adapters.orchestrator.max_depth",
    ]
    first = spawned(sealed)
    second = spawned(sealed, parent_id=first)
    pid = sealed.pid("agent-host")
    sealed.box.paths.manifest.write_bytes(
        text("max_agents = 3, max_depth = 1, grace_seconds = 1", "run_wall_seconds = 60, fds = 100")
    )
    assert sealed.client.call("config_apply")["live"] == [
        *keys,
        "limits.fds",
        "limits.run_wall_seconds",
    ]
    until(lambda: most_files(sealed) == 100)
    assert refused(sealed, parent_id=second) == "adapters.orchestrator.max_depth"
    third = spawned(sealed)
    assert refused(sealed) == "adapters.orchestrator.max_agents"
    living = sealed.client.call("list_agents", query={"state": "running"})["items"]
    assert {row["handle"]["agent_id"] for row in living} == {first, second, third}
    assert sealed.pid("agent-host") == pid
    exit_of = sealed.client.call(
        "terminate_agent", {"id": third}, query={"generation": 1}, wait_s=30
    )
    assert exit_of["signal"] == "SIGKILL"
    ended = until(lambda: _lasted(sealed, third))
    assert ended < 3
    os.kill(pid, signal.SIGKILL)
    until(lambda: sealed.pid("agent-host") not in (0, pid))
    assert until(lambda: most_files(sealed), 20) == 100


def _lasted(sealed: Sealed, agent: str) -> float:
    """Seconds from the request to end an agent until its end, from the journal; 0 while one of them
    is absent."""
    told = sealed.client.call("read_events", query={"types": "agent.*", "limit": 1000})["events"]
    asked = [
        one["ts"]
        for one in told
        if one["type"] == "agent.terminate.requested" and one["data"]["agent_id"] == agent
    ]
    ended = [
        one["data"]["exit"]["at"]
        for one in told
        if one["type"] == "agent.exited" and one["agent_id"] == agent
    ]
    if not (asked and ended):
        return 0.0
    return (datetime.fromisoformat(ended[0]) - datetime.fromisoformat(asked[0])).total_seconds()


def test_tasks_are_leased_as_was_applied(sealed: Sealed) -> None:
    """A task that begins after the change claims its bead for the new time."""

    def leased() -> float:
        task = sealed.client.submit_task(sh("sleep 60")).task_id
        expires = until(lambda: sealed.client.call("show_bead", {"id": task})["lease_expires_at"])
        return (datetime.fromisoformat(expires) - datetime.now(UTC)).total_seconds()

    assert 50 < leased() <= 60
    sealed.box.paths.manifest.write_bytes(text(beads="lease_seconds = 600"))
    assert sealed.client.call("config_apply")["live"] == ["adapters.beads.lease_seconds"]
    assert 590 < until(leased) <= 600


def test_a_boot_takes_the_mounted_bounds(sealed: Sealed) -> None:
    """A manifest that was changed while the box was down: agent-host works by the plan of this boot, not the baked one."""
    assert sealed.box.stop() == 0
    sealed.box.paths.manifest.write_bytes(text("max_agents = 1"))
    sealed.box.start({"BOX_TOKEN": TOKEN})
    sealed.box.wait_until(
        lambda: len(sealed.box.events("BootstrapCompleted")) == 2
    )  # not ready: the prefix has no packages
    assert json.loads(sealed.box.paths.boot_record.read_bytes())["plan"] != str(
        sealed.box.paths.plan
    )
    spawned(sealed)
    assert refused(sealed) == "adapters.orchestrator.max_agents"
