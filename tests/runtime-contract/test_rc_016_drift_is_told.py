"""RC-016: what differs from the plan is named, by control, as long as it lasts: in `/health`, in
the journal, in the gauge; in strict mode the box does not start with it. Column D."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pytest
from harness.container import DockerBox, docker
from harness.faults import remount
from harness.outcomes import METRICS_PORT
from harness.waiting import wait_for
from mutants.mutant import instead, without

MINUTE = 60
FASTER = 20  # the hook by which a test image checks so much more often
HOOKS = {"AGENTBOX_TEST_CLOCK_SCALE": str(FASTER)}
SECONDS = MINUTE / FASTER + 3


@dataclass(frozen=True)
class Case:
    """`options` start the box differently from its plan; `found` has each control that must be
    named, with its value."""

    found: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "tmpfs-runs-programs": Case(
        {"mount:/tmp": "tmpfs nodev,nosuid 262144 KiB"},
        {"edit": instead("mode=1777,size=256M,uid=1000,gid=1000,noexec,", "mode=1777,size=256M,uid=1000,gid=1000,exec,")},
    ),
    "tmpfs-smaller": Case(
        {"mount:/var/log": "tmpfs nodev,noexec,nosuid 65536 KiB"}, {"edit": instead("mode=755,size=128M", "mode=755,size=64M")}
    ),
    "capability": Case({"capability_bound": "NET_RAW"}, {"service": {"cap_add": ["NET_RAW"]}}),
    "engines-own-seccomp": Case({"seccomp_fingerprint": "ptrace=ESRCH"}, {"edit": without("- 'seccomp=./seccomp/agentbox.json'")}),
    "no-seccomp": Case(
        {"seccomp": "0", "seccomp_fingerprint": "keyctl="}, {"edit": instead("seccomp=./seccomp/agentbox.json", "seccomp=unconfined")}
    ),
    "new-privileges": Case({"no_new_privs": "0"}, {"edit": without("- 'no-new-privileges:true'")}),
    "pids": Case({"limit.pids": "1000"}, {"edit": instead("pids_limit: 2048", "pids_limit: 1000")}),
    "memory": Case({"limit.memory": str(2 << 30)}, {"edit": instead("'4096m'", "'2048m'")}),
    "cpus": Case({"limit.cpus": "1"}, {"edit": instead("cpus: 2.0", "cpus: 1.0")}),
    "nofile": Case({"limit.nofile": "2048"}, {"edit": instead("hard: 16384\n        soft: 16384", "hard: 2048\n        soft: 2048")}),
    "group": Case({"groups": "44"}, {"service": {"group_add": ["44"]}}),
    "device": Case({"devices.extra": "/dev/fuse"}, {"service": {"devices": ["/dev/fuse:/dev/fuse"]}}),
    "mount": Case({"mounts.extra": "/mnt/extra"}, {"service": {"volumes": ["./seccomp:/mnt/extra"]}}),
    "writable-manifest": Case(
        {"mount:/etc/agentbox.toml": "writable"},
        {"edit": instead("target: /etc/agentbox.toml\n        read_only: true", "target: /etc/agentbox.toml\n        read_only: false")},
    ),
}  # fmt: skip


TOGETHER = {
    "limits": ("pids", "memory", "cpus", "nofile", "new-privileges"),
    "mounts": ("tmpfs-runs-programs", "tmpfs-smaller", "mount", "writable-manifest"),
    "rights": ("capability", "engines-own-seccomp", "group", "device"),
    "no-seccomp": ("no-seccomp",),
}
"""The cases that one box has at once: each control is named, and no other."""


def together(names: Iterable[str]) -> Case:
    """One case with the differences of all."""
    cases = [CASES[name] for name in names]
    edits = [case.options["edit"] for case in cases if "edit" in case.options]
    services = [case.options["service"] for case in cases if "service" in case.options]
    return Case(
        {control: found for case in cases for control, found in case.found.items()},
        {
            "edit": lambda text: reduce(lambda text, edit: edit(text), edits, text),
            "service": {key: value for service in services for key, value in service.items()},
        },
    )


def drift(box: DockerBox) -> dict[str, str]:
    """The controls that `/health` reports now: control -> found."""
    rows = [str(row).partition(": ") for row in box.get("/health").json["posture"]["drift"]]
    return {control: told.rpartition(" (expected")[0] for control, _, told in rows}


def gauge(box: DockerBox) -> dict[str, int]:
    """The metric: control -> 1 while it differs."""
    text = box.get("/metrics", port=METRICS_PORT).body.decode()
    rows = re.findall(r'^agentbox_posture_drift\{control="([^"]+)"\} (\d)', text, re.MULTILINE)
    return {control: int(value) for control, value in rows}


def events(box: DockerBox, name: str) -> dict[str, str]:
    """Control -> found of the boot events of that name that are about one control."""
    told = [event for event in box.events() if event["event"] == name and event["control"] != "all"]
    return {event["control"]: event["found"] for event in told}


def names_exactly(box: DockerBox, found: Mapping[str, str]) -> None:
    """The predicate: these controls and no other, in all three places."""
    box.start()
    box.wait_ready()
    told = drift(box)
    assert set(told) == set(found), f"named: {told}"
    for control, text in found.items():
        assert text in told[control], told
    assert {control for control, value in gauge(box).items() if value} == set(found)
    assert events(box, "PostureDrift") == told
    assert {row["control"] for row in box.sentinel()["posture"]["drift"]} == set(found)
    journal = [row["data"] for row in box.journal() if row["type"] == "boot.posture_drift"]
    assert {row["control"]: row["found"] for row in journal} == told


def test_rc_016_nothing_is_named_that_is_as_promised(running_docker: DockerBox) -> None:
    """No drift, and a gauge that shows every control of the plan at 0."""
    assert drift(running_docker) == {}
    shown = gauge(running_docker)
    assert set(shown.values()) == {0}
    promised = set(running_docker.event("PostureChecked")["expected"])
    assert len(promised) > 20
    assert set(shown) == promised | {"container", "manifest", "posture"}


def test_rc_016_every_case_is_in_a_box() -> None:
    """Once."""
    assert sorted(name for names in TOGETHER.values() for name in names) == sorted(CASES)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TOGETHER)
def test_rc_016_each_difference_is_named(docker_box: Callable[..., DockerBox], name: str) -> None:
    """From the boot on, and nothing beside them."""
    case = together(TOGETHER[name])
    names_exactly(docker_box(**case.options), case.found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["capability", "mount", "pids"])
def test_rc_016_strict_refuses(docker_box: Callable[..., DockerBox], name: str) -> None:
    """Exit 1, the control in the reason, nothing sealed."""
    (control,) = CASES[name].found
    box = docker_box(strict=True, **CASES[name].options)
    box.start()
    assert box.wait_exit(10) == 1
    assert f"{control} is {CASES[name].found[control]}" in box.event("BootstrapFailed")["reason"]
    assert not box.sealed()


def told_while_it_lasts(box: DockerBox, seconds: float = SECONDS) -> None:
    """The predicate, of a box that is ready: a limit that the engine changes under it, and changes back."""
    docker("update", "--pids-limit", "1000", "agentbox-rc")
    wait_for(
        lambda: drift(box) == {"limit.pids": "1000"},
        seconds,
        lambda: f"limit.pids named; {drift(box)}",
    )
    assert gauge(box)["limit.pids"] == 1
    told = f"limit.pids: 1000 (expected {box.plan.resources.pids})"
    assert f"drift        {told}\nexceptions   none" in box.cli("health").out
    assert box.wait_ready()["ready"] is True
    docker("update", "--pids-limit", str(box.plan.resources.pids), "agentbox-rc")
    wait_for(lambda: drift(box) == {}, seconds, lambda: f"nothing named; {drift(box)}")
    assert gauge(box)["limit.pids"] == 0
    assert events(box, "PostureDrift") == {"limit.pids": "1000"}
    wait_for(lambda: events(box, "PostureChecked"), seconds, "the log says so too")
    assert events(box, "PostureChecked") == {"limit.pids": str(box.plan.resources.pids)}


def test_rc_016_told_while_it_lasts(docker_box: Callable[..., DockerBox]) -> None:
    """Named, an event, the gauge at 1, and the box stays ready; restored, an event, the gauge at 0.
    Then the machine's owner removes the flags of a memory file system of the running box."""
    box = docker_box(hooks=HOOKS)
    box.start()
    box.wait_ready()
    told_while_it_lasts(box)
    remount(int(box.inspect()["State"]["Pid"]), "/var/log", "rw")
    told = "tmpfs without flags 131072 KiB"
    wait_for(
        lambda: drift(box) == {"mount:/var/log": told},
        SECONDS,
        lambda: f"mount:/var/log named; {drift(box)}",
    )
