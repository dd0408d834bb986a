"""Live keys of the mounted manifest are applied in place; any other change is refused and has no
effect."""

import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.api_box import ApiBox
from support.plans import SYSTEM, lock_of
from support.ports import free_port

from agentbox.client import ApiError, BoxClient
from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import load
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.writer import serialize_lock as lock_bytes

MANIFEST = """
[meta]
schema_version = 1
name = "applied"
[api]
port = {port}
max_body = "{max_body}"
[observability]
metrics_port = {metrics}
[adapters]
beads = {{ use = "local-sqlite", lease_seconds = {lease} }}
pods.use = "off"
memory.use = "off"
events.use = "local-jsonl"
orchestrator.use = "off"
"""
PORTS = {"port": free_port(), "metrics": free_port()}


def written(box: ApiBox, text: str) -> None:
    """Replaces the mounted manifest as the CLI does: the same inode, other bytes."""
    box.paths.manifest.write_text(text)


def text(*, lease: int = 60, max_body: str = "1MiB") -> str:
    return MANIFEST.format(lease=lease, max_body=max_body, **PORTS)


@pytest.fixture
def applied() -> Iterator[ApiBox]:
    """An API whose plan was built from its own mounted manifest and lock."""
    with tempfile.TemporaryDirectory(prefix="abx-", dir="/var/tmp") as folder:
        prefix = Path(folder)
        (prefix / "etc").mkdir()
        path = prefix / "etc/agentbox.toml"
        path.write_text(text())
        manifest, features = load(path), load_features()
        lock = lock_of(enabled_features(manifest, features))
        box = ApiBox(
            prefix,
            orchestrator=False,
            plan=build_plan(manifest, features, lock_bytes(lock), lock, SYSTEM),
        )
        box.paths.lock.write_bytes(lock_bytes(lock))
        with box:
            yield box


def lease_of_a_claim(client: BoxClient) -> float:
    """Seconds of a claim that requests no lease time."""
    epic = client.call("create_epic", body={"title": "e"})["id"]
    bead = client.call("create_child", {"id": epic}, body={"title": "t"})["id"]
    claim = client.call("claim", {"id": bead}, body={"lease_id": str(uuid.uuid4())})
    return (datetime.fromisoformat(claim["expires_at"]) - datetime.now(UTC)).total_seconds()


def test_nothing_changed_is_nothing_applied(applied: ApiBox) -> None:
    """A comment, or a default written out, is no change."""
    written(applied, text() + "# a comment\n")
    with applied.client() as client:
        assert client.call("config_apply") == {
            "live": [],
            "boot": [],
            "recreate": [],
            "rebuild": [],
        }


def test_a_live_key_acts_at_once(applied: ApiBox) -> None:
    """The slot works with the new value in the same process."""
    with applied.client() as client:
        assert 50 < lease_of_a_claim(client) <= 60
        uptime = client.livez().uptime
        written(applied, text(lease=7))
        assert client.call("config_apply")["live"] == ["adapters.beads.lease_seconds"]
        end = datetime.now(UTC).timestamp() + 5
        while lease_of_a_claim(client) > 7:
            assert datetime.now(UTC).timestamp() < end
        assert client.livez().uptime > uptime


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_was_applied_outlives_the_api(applied: ApiBox, how: str) -> None:
    """Restarted in the same boot, it uses the applied value, reports no drift to apply, and keeps
    the plan digest of the boot. A later change is compared with the applied manifest."""
    with applied.client() as client:
        booted = client.meta().plan_digest
        written(applied, text(lease=7))
        client.call("config_apply")
        getattr(applied, how)()
        applied.start()
        assert 0 < lease_of_a_claim(client) <= 7
        assert client.meta().plan_digest == booted
        assert client.call("config_apply")["live"] == []
        written(applied, text())
        assert client.call("config_apply")["live"] == ["adapters.beads.lease_seconds"]


def test_no_room_for_what_was_applied_applies_nothing(applied: ApiBox) -> None:
    """502 with the directory's name; the old value stays."""
    applied.paths.applied_plan.mkdir()
    written(applied, text(lease=7))
    with applied.client() as client:
        with pytest.raises(ApiError) as caught:
            client.call("config_apply")
        assert (caught.value.status, caught.value.code) == (502, "backend-error")
        assert str(applied.paths.run) in str(caught.value)
        assert lease_of_a_claim(client) > 50


def test_a_key_that_needs_more_is_refused_whole(applied: ApiBox) -> None:
    """409 with every changed key by class; the live one among them was not applied."""
    written(applied, text(lease=7, max_body="2MiB"))
    with applied.client() as client:
        with pytest.raises(ApiError) as caught:
            client.call("config_apply")
        assert caught.value.status == 409
        assert caught.value.problem["keys"]["boot"] == ["api.max_body"]
        assert caught.value.problem["keys"]["live"] == ["adapters.beads.lease_seconds"]
        assert lease_of_a_claim(client) > 50


@pytest.mark.parametrize("broken", ["[meta", "nonsense = 1\n", '[api]\nport = "x"\n'])
def test_a_broken_manifest_is_refused_with_its_findings(applied: ApiBox, broken: str) -> None:
    """400, each finding with its key; the box continues as before."""
    written(applied, broken)
    with applied.client() as client:
        with pytest.raises(ApiError) as caught:
            client.call("config_apply")
        assert (caught.value.status, caught.value.code) == (400, "validation")
        assert caught.value.problem["errors"]
        assert client.call("list_beads") is not None
