"""A mounted manifest that differs from the baked one: decided by the apply class of the keys that changed."""

import json
import subprocess
import sys

import pytest
from support.prefix_box import PrefixBox

from agentbox.box.supervision.boot_record import read_boot_record
from agentbox.core.canonical import digest
from agentbox.core.paths import CHECKOUT
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.load import parse
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.model import Plan

SYSTEM = "x86_64-linux"
BASE = """[meta]
schema_version = 1
name = "box"
[mesh]
mode = "standalone"
[adapters]
beads.use = "local-sqlite"
pods.use = "off"
memory.use = "off"
events.use = "local-jsonl"
orchestrator.use = "local-process"
[observability]
metrics_port = {metrics}
{observability}
[api]
port = {port}
{api}
{more}
"""


def text(port: int, *, api: str = "", observability: str = "", more: str = "") -> bytes:
    filled = BASE.format(
        port=port, metrics=port + 1, api=api, observability=observability, more=more
    )
    return filled.encode()


def plan_of(data: bytes) -> Plan:
    lock = (CHECKOUT / "agentbox.lock").read_bytes()
    parsed = parse(data, "agentbox.toml")
    return build_plan(parsed, load_features(), lock, parse_lock(lock), SYSTEM)


@pytest.fixture
def baked(box: PrefixBox, port: int) -> Plan:
    """The box as `agentbox build` would build it from the base manifest."""
    data = text(port)
    plan = box.install(plan_of(data))
    box.paths.lock.write_bytes((CHECKOUT / "agentbox.lock").read_bytes())
    box.paths.baked_manifest.write_bytes(data)
    box.paths.manifest.write_bytes(data)
    return plan


def test_equal_bytes_import_nothing_but_the_standard_library_and_our_own_modules() -> None:
    """Stage A as PID 1 stays light: no third party package, and none of the slow modules of the standard library."""
    code = (
        "import sys; before = set(sys.modules); import agentbox.box.boot.main; new = set(sys.modules) - before;"
        "import json; print(json.dumps(sorted(new)))"
    )
    ended = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    modules = json.loads(ended.stdout)
    assert "agentbox.plan.model" in modules
    assert {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) == {
        "agentbox"
    }
    assert not {
        "http.client",
        "xmlrpc.client",
        "subprocess",
        "tomllib",
        "asyncio",
        "agentbox.manifest",
    } & set(modules)


def test_the_baked_plan_is_in_force_without_drift(box: PrefixBox, baked: Plan) -> None:
    """The baked plan is in force without drift."""
    box.start()
    box.wait_for_event("BootstrapCompleted")
    assert box.events("ManifestDrift") == []
    record = read_boot_record(box.paths)
    assert record is not None
    assert record.plan == str(box.paths.plan)


def test_a_comment_is_no_drift_but_another_manifest_digest(
    box: PrefixBox, baked: Plan, port: int
) -> None:
    """A comment is no drift but another manifest digest."""
    box.paths.manifest.write_bytes(text(port) + b"# a comment\n")
    box.start()
    box.wait_for_event("BootstrapCompleted")
    digests = json.loads(box.paths.sentinel.read_bytes())["digests"]
    assert digests["manifest"] != digests["baked_manifest"] == baked.digests.manifest
    assert [event["class"] for event in box.events("ManifestDrift")] == []


@pytest.mark.parametrize(
    ("change", "key", "kind"),
    [
        ({"api": 'max_body = "2MiB"'}, "api.max_body", "boot"),
        ({"more": "[limits]\nrun_wall_seconds = 77"}, "limits.run_wall_seconds", "live"),
    ],
)
def test_a_key_of_class_boot_or_live_is_accepted_and_told(
    box: PrefixBox, baked: Plan, port: int, change: dict[str, str], key: str, kind: str
) -> None:
    """The plan, supervisord and probes of the mounted manifest are in force, and the sentinel names them."""
    data = text(port, **change)
    plan = plan_of(data)
    box.paths.manifest.write_bytes(data)
    box.start({"AGENTBOX_PLAN_DIGEST": baked.digest})
    box.wait_for_event("BootstrapCompleted")
    told = [
        (event["class"], event["level"], event["keys"], event["source"])
        for event in box.events("ManifestDrift")
    ]
    assert told == [(kind, "info", [key], "manifest"), ("", "info", [], "compose")]
    assert Plan.from_json(json.loads(box.paths.drift_plan.read_bytes())) == plan
    assert box.paths.drift_supervisord_conf.exists()
    digests = json.loads(box.paths.sentinel.read_bytes())["digests"]
    assert digests["plan"] == plan.digest
    assert digests["probes"] == digest(box.paths.drift_probes.read_bytes())


def test_a_key_of_class_recreate_warns_unless_compose_was_rendered_from_it(
    box: PrefixBox, baked: Plan, port: int
) -> None:
    """A key of class recreate warns unless compose was rendered from it."""
    data = text(port, observability='log_level = "debug"')
    box.paths.manifest.write_bytes(data)
    box.start({"AGENTBOX_PLAN_DIGEST": baked.digest})
    box.wait_for_event("BootstrapCompleted")
    (event,) = box.events("ManifestDrift")
    assert (event["class"], event["level"], event["keys"]) == (
        "recreate",
        "warn",
        ["observability.log_level"],
    )
    box.kill()
    box.start({"AGENTBOX_PLAN_DIGEST": plan_of(data).digest})
    box.wait_until(lambda: len(box.events("BootstrapCompleted")) == 2)
    assert len(box.events("ManifestDrift")) == 1


def test_a_key_of_class_recreate_is_fatal_in_strict_mode(
    box: PrefixBox, baked: Plan, port: int
) -> None:
    """A key of class recreate is fatal in strict mode."""
    box.paths.manifest.write_bytes(text(port, observability='log_level = "debug"'))
    box.start({"AGENTBOX_PLAN_DIGEST": baked.digest, "AGENTBOX_STRICT": "1"})
    assert box.wait(10) == 1
    failed = box.wait_for_event("BootstrapFailed")
    assert "observability.log_level" in failed["reason"]
    assert "agentbox up" in failed["fix"]


def test_a_key_of_class_rebuild_ends_the_boot_naming_keys_and_command(
    box: PrefixBox, baked: Plan, port: int
) -> None:
    """A key of class rebuild ends the boot naming keys and command."""
    box.paths.manifest.write_bytes(text(port + 5))
    box.start()
    assert box.wait(10) == 1
    assert box.wait_for_event("ManifestDrift")["level"] == "error"
    failed = box.wait_for_event("BootstrapFailed")
    assert failed["phase"] == "0.5"
    assert "api.port" in failed["reason"]
    assert "agentbox up" in failed["fix"]


@pytest.mark.parametrize("damage", [b"[api\n", b"[api]\nprot = 1\n", b'[api]\nport = "x"\n'])
def test_a_manifest_with_an_error_is_refused_with_its_first_finding(
    box: PrefixBox, baked: Plan, damage: bytes
) -> None:
    """A manifest with an error is refused with its first finding."""
    box.paths.manifest.write_bytes(damage)
    box.start()
    assert box.wait(10) == 1
    failed = box.wait_for_event("BootstrapFailed")
    assert "cannot use the mounted manifest: E0" in failed["reason"]


def test_compose_of_another_manifest_is_information(box: PrefixBox, baked: Plan) -> None:
    """Compose of another manifest is information."""
    box.start({"AGENTBOX_PLAN_DIGEST": "sha256:other"})
    box.wait_for_event("BootstrapCompleted")
    (event,) = box.events("ManifestDrift")
    assert (event["source"], event["level"], event["keys"]) == ("compose", "info", [])
