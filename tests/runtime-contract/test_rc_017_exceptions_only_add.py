"""RC-017: exceptions only add: no key removes a line of the rendering, and a real container has the
additions beside the complete baseline. Column D."""

import difflib
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from harness.container import DockerBox
from support.plans import SYSTEM, lock_of

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import parse
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.model import Plan, SecurityExceptionPlan, TmpfsPlan, VolumePlan
from agentbox.plan.render.compose import compose

# One feature a gate, without packages: what a key adds does not hang on them.
FEATURES = load_features(CHECKOUT / "tests/rules/features") | {
    name: feature for name, feature in load_features().items() if feature.gate is None
}
GATES = {
    "code-server": "toolchains = { code_server = true }",
    "desktop": "desktop = { enabled = true }",
    "gaussian-splatting": 'gpu = { backend = "local-cuda" }\nskills = { spatial_and_3d = { gaussian_splatting = true } }',
    "gpu-cuda": 'gpu = { backend = "local-cuda" }',
    "gpu-rocm": 'gpu = { backend = "ollama-rocm" }',
    "playwright": "skills = { browser = { playwright = true } }",
    "telegram-mirror": "sovereign_mesh = { telegram_mirror = { enabled = true } }",
}
DESKTOP = SecurityExceptionPlan(
    key="desktop",
    reason="the display server needs its socket and runtime directories",
    tmpfs=(
        TmpfsPlan(target="/run/user/1000", size=32 << 20, mode="0700"),
        TmpfsPlan(target="/tmp/.X11-unix", size=1 << 20, mode="1777"),
    ),
)
EVERYTHING = SecurityExceptionPlan(
    key="desktop",
    reason="one of every field that this machine can grant",
    tmpfs=(TmpfsPlan(target="/run/programs", size=1 << 20, mode="0700", exec=True),),
    volumes=(VolumePlan(source="code-server", target="/var/lib/agentbox/code-server"),),
    devices=("/dev/fuse",),
    group_add=("44",),
    cap_add=("NET_BIND_SERVICE",),
)
BASELINE_TMPFS = {"/run", "/tmp", "/var/log", "/var/log/supervisor", "/var/run"}
# The plan of such a box is mounted over the image's own, which is reported as such.
LAID_OVER = {"mounts.extra"}


def rendered(text: str) -> str:
    """The compose file of a manifest, digests masked."""
    manifest = parse(f"meta = {{ schema_version = 1 }}\n{text}\n".encode(), "agentbox.toml")
    assert manifest.findings == (), manifest.findings
    lock = lock_of(enabled_features(manifest, FEATURES))
    return re.sub(
        r"[0-9a-f]{12,64}",
        "…",
        compose(build_plan(manifest, FEATURES, serialize_lock(lock), lock, SYSTEM)),
    )


def adding(delta: SecurityExceptionPlan, plan: Plan) -> Plan:
    """The plan with that exception in force."""
    roots = (*plan.writable_roots, *(row.target for row in (*delta.tmpfs, *delta.volumes)))
    return replace(plan, exceptions=(delta,), writable_roots=tuple(sorted(roots)))


def drift(box: DockerBox) -> set[str]:
    return {row.partition(": ")[0] for row in box.get("/health").json["posture"]["drift"]}


@pytest.mark.parametrize("key", GATES)
def test_rc_017_no_line_is_removed(key: str) -> None:
    """Every line of the compose file without the block stays; something is added."""
    before = rendered(GATES[key]).splitlines()
    after = rendered(f"{GATES[key]}\nsecurity = {{ exceptions = {{ {key} = {{}} }} }}").splitlines()
    marks = [line[:1] for line in difflib.ndiff(before, after)]
    assert "+" in marks
    assert "-" not in marks, [line for line in difflib.ndiff(before, after) if line[:1] in "+-"]


def desktop_adds_two(box: DockerBox) -> None:
    """The predicate, for a box whose plan has the desktop's exception."""
    box.start()
    box.wait_ready()
    host = box.inspect()["HostConfig"]
    assert set(host["Tmpfs"]) == BASELINE_TMPFS | {"/run/user/1000", "/tmp/.X11-unix"}, "tmpfs"
    assert (host["CapDrop"], host["CapAdd"], host["ReadonlyRootfs"]) == (["ALL"], None, True), (
        "baseline"
    )
    assert "no-new-privileges:true" in host["SecurityOpt"], "baseline"
    made = box.run(
        ["bash", "-c", "touch /run/user/1000/a /tmp/.X11-unix/a && stat -c %u /run/user/1000/a"]
    )
    assert made.out.strip() == "1000", made.err
    assert drift(box) == LAID_OVER


@pytest.mark.sampled(4, family="variants of a box")
def test_rc_017_desktop(docker_box: Callable[..., DockerBox]) -> None:
    """Two more tmpfs, which uid 1000 can write; every capability still dropped; nothing else differs."""
    desktop_adds_two(docker_box(alter=partial(adding, DESKTOP)))


def test_rc_017_every_field(docker_box: Callable[..., DockerBox]) -> None:
    """A device, a group, a capability, a volume, and a tmpfs that runs programs: granted, promised,
    and found; the rest of the baseline is enforced."""
    box = docker_box(alter=partial(adding, EVERYTHING))
    box.start()
    box.wait_ready()
    host = box.inspect()["HostConfig"]
    assert [row["PathInContainer"] for row in host["Devices"]] == ["/dev/fuse"]
    assert (host["GroupAdd"], host["CapAdd"], host["CapDrop"]) == (
        ["44"],
        ["NET_BIND_SERVICE"],
        ["ALL"],
    )
    assert host["ReadonlyRootfs"] is True
    ran = box.run(
        [
            "bash",
            "-c",
            "cp /usr/bin/true /run/programs/x && /run/programs/x && touch /var/lib/agentbox/code-server/a",
        ]
    )
    assert ran.code == 0, ran.err
    refused = box.run(["bash", "-c", "cp /usr/bin/true /tmp/x && /tmp/x"])
    assert "Permission denied" in refused.err
    found = box.event("PostureChecked")["found"]
    assert (found["capability_bound"], found["groups"], found["devices.extra"]) == (
        "NET_BIND_SERVICE",
        "44",
        "none",
    )
    assert (found["capabilities"], found["no_new_privs"], found["root"]) == (
        "none",
        "1",
        "read-only",
    )
    assert drift(box) == LAID_OVER
