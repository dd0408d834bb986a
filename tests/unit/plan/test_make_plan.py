"""make_plan: what a manifest means, and when it means nothing."""

import json

import pytest
from support.plans import SYSTEM, lock_of, manifest_bytes, plan_of

from agentbox.core.canonical import digest
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.load import parse
from agentbox.plan.build import build_plan
from agentbox.plan.errors import LockMismatchError, PlanError
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.model import Plan


def test_the_default_manifest_gives_six_programs_and_publishes_two_ports_on_loopback() -> None:
    """Bootstrap, API, gateway, agent-host and seal run, and `backup` when a backup is made; only
    the API and the metrics are published, on 127.0.0.1."""
    plan = plan_of()
    assert [program.name for program in plan.programs] == [
        "bootstrap",
        "management-api",
        "gateway",
        "agent-host",
        "backup",
        "bootstrap-seal",
    ]
    assert [program.name for program in plan.programs if not program.autostart] == ["backup"]
    required = [program.name for program in plan.required_programs]
    assert required == ["bootstrap", "management-api", "gateway", "agent-host"]
    assert [(port.port, port.publish) for port in plan.ports] == [
        (9090, "127.0.0.1"),
        (9091, "127.0.0.1"),
        (9093, ""),
    ]


def test_an_orchestrator_that_is_off_needs_no_agent_host_and_no_gateway() -> None:
    """The gate of a program decides; a slot that is off is not required, and nothing listens for
    its agents."""
    plan = plan_of('[adapters]\norchestrator.use = "off"\n')
    assert not {"agent-host", "gateway"} & {program.name for program in plan.programs}
    assert [port.name for port in plan.ports] == ["api", "metrics"]
    assert not plan.slots["orchestrator"].required


def test_sizes_are_bytes_and_slots_have_only_the_options_that_their_class_reads() -> None:
    """`segment_size = "1MiB"` arrives as a number; `dsn_env` does not reach a local journal."""
    plan = plan_of('[adapters]\nevents.segment_size = "1MiB"\n[limits]\nmemory = "3MiB"\n')
    assert plan.slots["events"].options["segment_size"] == 1 << 20
    assert set(plan.slots["events"].options) == {"fsync", "max_size", "segment_size"}
    assert plan.limits.memory == 3 << 20


def test_equal_inputs_give_one_digest_and_any_change_gives_another() -> None:
    """The digest names the manifest's bytes, the lock's bytes, the system and the test hooks."""
    again = [plan_of(), plan_of()]
    assert again[0] == again[1]
    different = [plan_of("# note\n"), plan_of("[limits]\npids = 7\n"), plan_of(test_hooks=True)]
    different.append(plan_of(system="aarch64-linux"))
    digests = {plan.digest for plan in [*again, *different]}
    assert len(digests) == 1 + len(different)


def test_a_plan_survives_its_json_form() -> None:
    """What boot reads from plan.json has the digest of what was written."""
    plan = plan_of()
    read = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert read.digest == plan.digest
    assert read.program("agent-host") == plan.program("agent-host")


def test_digests_are_those_of_the_inputs() -> None:
    """Manifest, lock and seccomp file can be checked against the plan by their bytes."""
    manifest, lock, seccomp = parse(manifest_bytes(), "x"), lock_of(), b"{}"
    plan = build_plan(
        manifest, load_features(), serialize_lock(lock), lock, SYSTEM, seccomp=seccomp
    )
    assert (plan.digests.manifest, plan.digests.lock, plan.digests.seccomp) == (
        digest(manifest_bytes()),
        digest(serialize_lock(lock)),
        digest(seccomp),
    )


@pytest.mark.parametrize(
    ("text", "lock", "system", "said"),
    [
        ("", lock_of(("build", "codex", "core")), SYSTEM, "feature codex was removed"),
        ("", lock_of(("build",)), SYSTEM, "feature core was added"),
        ("", lock_of(), "aarch64-linux", "the lock covers x86_64-linux"),
        ('[image]\nsuite = "forky"\n', lock_of(), SYSTEM, "image.suite is forky"),
        ('[image]\nsource = "nixpkgs"\n', lock_of(), SYSTEM, "image.source is nixpkgs"),
    ],
)
def test_a_lock_for_other_packages_is_refused_by_what_differs(
    text: str, lock, system: str, said: str
) -> None:  # type: ignore[no-untyped-def]
    """The renderer must not describe an image that the lock does not build. Exit code 5."""
    manifest = parse(manifest_bytes(text), "agentbox.toml")
    with pytest.raises(LockMismatchError, match=said) as caught:
        build_plan(manifest, load_features(), serialize_lock(lock), lock, system)
    assert caught.value.exit_code == 5


def test_too_little_time_to_stop_is_an_error_of_the_plan() -> None:
    """The sum over supervisord's groups must be small enough, or the engine would kill a box in the
    middle of its shutdown."""
    with pytest.raises(PlanError, match=r"may take 26 s .* resources.stop_seconds allows 25"):
        plan_of("[resources]\nstop_seconds = 25\n")
    assert plan_of("[resources]\nstop_seconds = 26\n").resources.stop_seconds == 26


def test_every_writable_mount_is_a_writable_root() -> None:
    """Boot and /ready prove what the engine mounts writable, the agents' volumes included."""
    assert plan_of().writable_roots == (
        "/run/agentbox",
        "/tmp",
        "/var/lib/agentbox",
        "/var/lib/agentbox/backups",
        "/var/lib/agentbox/branches",
        "/var/log",
        "/var/log/supervisor",
        "/var/run",
        "/workspace",
    )


def test_every_probe_of_core_is_required_and_runs_at_its_stage() -> None:
    """Paths and imports before supervisord, programs after the seal."""
    probes = plan_of().probes
    assert len(probes) > 3
    assert all(probe.required and probe.feature == "core" for probe in probes)
    assert {(probe.kind, probe.stage) for probe in probes} == {
        ("path", "boot"),
        ("python-import", "boot"),
        ("exec", "deep"),
        ("layer-files", "deep"),
    }


def test_a_manifest_with_findings_has_no_plan() -> None:
    """That is a bug of the caller, which has the findings."""
    manifest = parse(b"[meta]\nschema_version = 1\nnmae = 'x'\n", "agentbox.toml")
    assert manifest.findings
    with pytest.raises(ValueError, match="has findings"):
        build_plan(manifest, load_features(), b"", lock_of(), SYSTEM)
