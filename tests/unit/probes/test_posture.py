"""Posture: every promised control is measured, and differences are named."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.plans import plan_of
from support.prefix_box import make_plan

from agentbox.box.posture import fingerprint
from agentbox.box.posture.drift import compare
from agentbox.box.posture.measured import measured_controls, measured_tmpfs
from agentbox.box.posture.promised import promised_controls
from agentbox.box.posture.unplanned_mounts import extra_mounts
from agentbox.core.linux import capabilities
from agentbox.core.linux.mountinfo import containing_mount, mounts, parse, tmpfs_kib
from agentbox.core.paths import Paths
from agentbox.plan.merge import ContainerProfile, effective_profile
from agentbox.plan.model import Device, SecurityExceptionPlan, TmpfsPlan, VolumePlan
from agentbox.plan.names import KUBERNETES

BOX = Paths()
TABLE = """\
22 21 0:21 / / ro,relatime master:1 - overlay overlay rw,lowerdir=/a,upperdir=/b
23 22 0:22 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
24 23 0:22 /sys /proc/sys ro,nosuid,nodev,noexec,relatime - proc proc rw
25 22 0:23 / /tmp rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=262144k,uid=1000,gid=1000
26 22 8:1 /x /a\\040place rw,relatime shared:7 - ext4 /dev/sda1 rw
27 22 8:1 /m /etc/agentbox.toml ro,relatime - ext4 /dev/sda1 rw
28 25 0:24 / /tmp rw,relatime - tmpfs tmpfs rw
"""


def profile(**changes: object) -> ContainerProfile:
    base = {"tmpfs": (TmpfsPlan(target="/tmp", size=1 << 28, mode="1777"),), "volumes": ()}
    return ContainerProfile(**{**base, **changes})  # type: ignore[arg-type]


def test_without_our_list_the_fingerprint_is_another_one() -> None:
    """The same kernel, no list: each refused call is answered by the kernel itself."""
    found = dict(pair.split("=") for pair in fingerprint.measure().split(","))
    expected = dict(pair.split("=") for pair in fingerprint.expected().split(","))
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] == expected[name]] == ["pidfd_open"]


def test_posture_names_what_differs_and_nothing_else() -> None:
    """By control, with both values."""
    drifted = compare({"a": "1", "b": "2"}, {"a": "1", "b": "3", "more": "x"})
    assert [(row.control, row.expected, row.found) for row in drifted] == [("b", "2", "3")]


@pytest.mark.parametrize("prefix", ["/", "/somewhere"])
def test_every_promised_control_is_measured(prefix: str) -> None:
    """Of a plan with exceptions, on this machine, which is not a box: nothing raises, and no
    promised control is omitted."""
    rows = (
        TmpfsPlan(target="/tmp", size=1, mode="1777"),
        TmpfsPlan(target="/nowhere", size=1 << 20, mode="755", exec=True),
    )
    added = SecurityExceptionPlan(
        key="desktop",
        reason="r",
        cap_add=("SYS_NICE",),
        volumes=(VolumePlan(source="x", target="/gone"),),
    )
    plan = make_plan(1, (), tmpfs=rows, exceptions=(added,))
    paths = Paths(Path(prefix))
    expected, found = promised_controls(plan, paths), measured_controls(plan, paths, 0)
    assert set(expected) <= set(found)
    assert found["landlock"] == "absent"
    if prefix == "/":
        assert expected["capability_bound"] == "SYS_NICE"
        assert expected["mount:/nowhere"] == "tmpfs nodev,nosuid 1024 KiB"
        assert (found["mount:/nowhere"], found["mount:/gone"]) == ("no mount", "no mount")


def test_kubernetes_promises_what_its_renderer_can_write() -> None:
    """Without the pid limit, and memory file systems by kind and size alone; all else as everywhere, and still measured."""
    plan = plan_of()
    everywhere, pod = promised_controls(plan, BOX), promised_controls(plan, BOX, KUBERNETES)
    assert set(everywhere) - set(pod) == {"limit.pids"}
    other = {name: value for name, value in pod.items() if everywhere[name] != value}
    assert other == {
        f"mount:{row.target}": f"tmpfs {row.size >> 10} KiB"
        for row in effective_profile(plan).tmpfs
    }
    assert set(pod) <= set(measured_controls(plan, BOX, 0, KUBERNETES))
    assert promised_controls(plan, BOX, "another word") == everywhere


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("40 22 0:40 / /run rw,relatime - tmpfs tmpfs rw,size=65536k", "tmpfs 65536 KiB"),
        ("40 22 0:40 / /run rw,relatime - tmpfs tmpfs rw,size=131072k", "tmpfs 131072 KiB"),
        ("40 22 0:40 / /run rw,relatime - tmpfs tmpfs rw", "tmpfs any KiB"),
        ("40 22 8:1 / /run rw,relatime - ext4 /dev/sda rw", "ext4"),
        ("", "no mount"),
    ],
)  # fmt: skip
def test_in_a_pod_another_size_or_kind_is_still_told(line: str, told: str) -> None:
    """The flags are not checked there; the rest is."""
    rows = parse(f"{TABLE}{line}\n" if line else TABLE)
    wanted = TmpfsPlan(target="/run", size=64 << 20, mode="755")
    assert measured_tmpfs(wanted, rows.get("/run"), KUBERNETES) == told
    everywhere = measured_tmpfs(wanted, rows.get("/run"), "")
    assert everywhere == (told.replace("tmpfs", "tmpfs without flags"))


@pytest.mark.parametrize(
    ("line", "on", "told"),
    [
        ("rw,nosuid,nodev,relatime - tmpfs tmpfs rw,mode=755", KUBERNETES, "none"),
        ("rw,nosuid,nodev,relatime - tmpfs tmpfs rw,mode=755", "", "/var/tmp"),
        ("rw,relatime - tmpfs tmpfs rw,mode=755", KUBERNETES, "/var/tmp"),
        ("rw,nosuid,nodev - ext4 /dev/sda1 rw", KUBERNETES, "/var/tmp"),
    ],
)
def test_the_engine_of_a_pod_may_mount_a_tmpfs_at_var_tmp(line: str, on: str, told: str) -> None:
    """Podman and CRI-O do; any other mount there, and on any other target, is reported."""
    table = parse(f"30 22 0:30 / /var/tmp {line}\n")
    assert extra_mounts(effective_profile(plan_of()), BOX, table, on) == told


def test_an_exception_changes_what_is_promised_and_nothing_else() -> None:
    """A memory file system, a group and a capability are three controls; the rest stays."""
    plain = plan_of()
    added = SecurityExceptionPlan(
        key="desktop",
        reason="r",
        cap_add=("NET_RAW",),
        group_add=("44",),
        tmpfs=(TmpfsPlan(target="/x", size=4096, mode="0700"),),
    )
    before, after = (
        promised_controls(plain, BOX),
        promised_controls(replace(plain, exceptions=(added,)), BOX),
    )
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    assert changed == {
        "capability_bound": "NET_RAW",
        "groups": "44",
        "mount:/x": "tmpfs nodev,noexec,nosuid 4 KiB",
    }
    assert set(before) <= set(after)


def test_another_seccomp_list_has_no_known_fingerprint() -> None:
    """Only the mode is promised then."""
    named = replace(
        plan_of(), exceptions=(SecurityExceptionPlan(key="desktop", reason="r", seccomp="wide"),)
    )
    assert "seccomp_fingerprint" in promised_controls(plan_of(), BOX)
    assert "seccomp_fingerprint" not in promised_controls(named, BOX)
    assert promised_controls(named, BOX)["seccomp"] == "2"


def test_capability_sets_read_as_words() -> None:
    """By the numbers of the kernel; a bit that this release does not know is shown by its number."""
    assert capabilities.format_mask(0) == capabilities.format_names(()) == "none"
    assert (
        capabilities.format_mask(1 << 13 | 1 << 23)
        == capabilities.format_names(["SYS_NICE", "NET_RAW"])
        == "NET_RAW,SYS_NICE"
    )
    assert capabilities.format_mask(1 << 62) == "CAP_62"


def test_mountinfo_is_read_as_the_kernel_writes_it() -> None:
    """Escaped places, flags of the mount and of its file system, the topmost of two."""
    table = parse(TABLE)
    assert table["/"].read_only
    assert not table["/a place"].read_only
    assert table["/tmp"].flags == {"rw", "relatime"}
    assert (
        table["/tmp"].size_kib,
        parse(TABLE.replace("28 25", "28 25").rsplit("\n", 2)[0])["/tmp"].size_kib,
    ) == (
        None,
        262144,
    )
    lies_on = containing_mount("/proc/sys/kernel", table)
    assert lies_on is not None
    assert lies_on.target == "/proc/sys"
    assert (tmpfs_kib(1), tmpfs_kib(4096), tmpfs_kib(1 << 20)) == (4, 4, 1024)


def test_this_machines_own_mounts_can_be_read() -> None:
    """The real file: a root, and /proc as proc."""
    table = mounts()
    assert "/" in table
    assert table["/proc"].kind == "proc"


@pytest.mark.parametrize(
    ("line", "changes", "told"),
    [
        ("", {}, "/a place"),
        ("30 22 8:1 / /run/docker.sock rw - ext4 x rw\n", {}, "/a place, /run/docker.sock"),
        ("30 22 8:1 / /a\\040place rw - ext4 x rw\n", {"volumes": (VolumePlan(source="a", target="/a place"),)}, "none"),
        ("30 22 8:1 / /run/secrets/A ro - ext4 x rw\n", {}, "/a place"),
        ("30 22 8:1 / /usr/lib/libcuda.so ro - ext4 x rw\n", {}, "/a place, /usr/lib/libcuda.so"),
        (
            "30 22 8:1 / /usr/lib/libcuda.so ro - ext4 x rw\n",
            {"device_requests": (Device(driver="nvidia", count=-1, capabilities=("gpu",)),)},
            "/a place",
        ),
        ("30 22 0:5 /sda /dev/fuse rw - devtmpfs x rw\n", {"devices": ("/dev/fuse",)}, "/a place"),
        ("30 22 0:5 /sda /dev/sda rw - devtmpfs x rw\n", {}, "/a place, /dev/sda"),
    ],
)  # fmt: skip
def test_mounts_that_nothing_explains_are_named(
    line: str, changes: dict[str, object], told: str
) -> None:
    """What the plan mounts, the engine's own places and a vendor's read-only libraries are explained."""
    assert extra_mounts(profile(**changes), BOX, parse(TABLE + line)) == told


def test_many_extra_mounts_make_a_short_line() -> None:
    """Five, and how many more."""
    lines = "".join(f"{n} 22 8:1 / /x{n} rw - ext4 x rw\n" for n in range(30, 39))
    assert (
        extra_mounts(profile(), BOX, parse(TABLE + lines))
        == "/a place, /x30, /x31, /x32, /x33, and 5 more"
    )


def test_the_baseline_promises_its_five_memory_file_systems() -> None:
    """With flags and size of each, the four volumes, and a manifest that cannot be written."""
    found = promised_controls(plan_of(), BOX)
    mounted = {name: value for name, value in found.items() if name.startswith("mount:")}
    assert len(mounted) == len(effective_profile(plan_of()).tmpfs) + 5 == 10
    assert mounted["mount:/tmp"] == "tmpfs nodev,noexec,nosuid 262144 KiB"
    assert (mounted["mount:/workspace"], mounted["mount:/etc/agentbox.toml"]) == (
        "writable",
        "read-only",
    )
    assert (found["mounts.extra"], found["devices.extra"], found["root"]) == (
        "none",
        "none",
        "read-only",
    )
