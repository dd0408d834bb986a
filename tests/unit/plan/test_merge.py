"""merge: baseline and exceptions result in a superset, whatever the exceptions are."""

from dataclasses import fields, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plans import plan_of as _plan_of

from agentbox.plan.errors import PlanError
from agentbox.plan.merge import ContainerProfile, baseline, effective_profile, merge
from agentbox.plan.model import Device, Plan, SecurityExceptionPlan, TmpfsPlan, VolumePlan
from agentbox.policy.protected_paths import hides_image

_PLAN = _plan_of()


def plan_of() -> Plan:
    """One plan for all examples: making it is slow."""
    return _PLAN


_FREE = st.sampled_from(
    ["/dev/shm", "/a", "/a/b", "/run/user/1000", "/tmp/.X11-unix", "/var/lib/agentbox/x"]
)
_ANY = st.one_of(
    _FREE,
    st.sampled_from(["/tmp", "/run", "/var/log", "/workspace", "/opt", "/etc/x", "/var/lib", "/"]),
)
_WORDS = st.sampled_from(["one", "two", "three"])
_MODES = st.integers(0, 0o1777).map(lambda bits: f"{bits:04o}")
_DEVICES = st.builds(
    Device, driver=_WORDS, count=st.integers(-1, 3), capabilities=st.just(("gpu",))
)


def _tuples(values: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(values, max_size=3).map(tuple)


def _tmpfs(targets: st.SearchStrategy[str]) -> st.SearchStrategy[TmpfsPlan]:
    return st.builds(
        TmpfsPlan, target=targets, size=st.integers(1, 1 << 40), mode=_MODES, exec=st.booleans()
    )


def _volumes(targets: st.SearchStrategy[str]) -> st.SearchStrategy[VolumePlan]:
    """One source a target, so that no two contradict each other."""
    return st.builds(
        lambda target, ro: VolumePlan(source=f"v{target}", target=target, read_only=ro),
        targets,
        st.booleans(),
    )


def _deltas(
    tmpfs: st.SearchStrategy[TmpfsPlan],
    volumes: st.SearchStrategy[VolumePlan],
    capabilities: st.SearchStrategy[str],
) -> st.SearchStrategy[list[SecurityExceptionPlan]]:
    one = st.builds(
        SecurityExceptionPlan, key=_WORDS, reason=st.just("because it must"),
        tmpfs=_tuples(tmpfs), volumes=_tuples(volumes),
        devices=_tuples(_WORDS), group_add=_tuples(_WORDS), cap_add=_tuples(capabilities),
        device_requests=_tuples(_DEVICES), runtime=st.sampled_from(["", "nvidia"]), seccomp=st.sampled_from(["", "wide"]),
    )  # fmt: skip
    return st.lists(one, max_size=5)


# Places of their own for tmpfs (what may grow among them) and volumes: always accepted.
_TAME = _deltas(
    _tmpfs(_FREE).filter(lambda row: "agentbox" not in row.target) | st.builds(TmpfsPlan, target=st.just("/run"), size=st.integers(1, 1 << 40), mode=_MODES),
    _volumes(st.sampled_from(["/var/lib/agentbox/x", "/b", "/b/c", "/mnt/data"])),
    st.sampled_from(["NET_RAW", "SYS_NICE"]),
)  # fmt: skip
_WILD = _deltas(_tmpfs(_ANY), _volumes(_ANY), st.sampled_from(["NET_RAW", "ALL"]))
_DENIALS = ("user", "read_only", "cap_drop", "no_new_privileges", "privileged")
_LISTS = ("devices", "group_add", "cap_add", "device_requests")


def _merged(deltas: list[SecurityExceptionPlan]) -> ContainerProfile | str:
    """The profile, or why it is refused."""
    try:
        return merge(baseline(plan_of()), deltas)
    except PlanError as error:
        return str(error)


def _covers(old: ContainerProfile, new: ContainerProfile) -> bool:
    """Every grant of the old one is in the new one, and no denial or restriction is missing or
    weaker."""
    mounts = {row.target: row for row in new.tmpfs}
    volumes = {row.target: row for row in new.volumes}
    return (
        all(getattr(old, name) == getattr(new, name) for name in _DENIALS)
        and all(
            (mounts[row.target].mode, mounts[row.target].exec) == (row.mode, row.exec)
            and mounts[row.target].size >= row.size
            for row in old.tmpfs
            if row.target in mounts
        )
        and {row.target for row in old.tmpfs} <= set(mounts)
        and all(volumes.get(row.target) == row for row in old.volumes)
        and not set(mounts) & set(volumes)
        and not any(hides_image(target) for target in {*mounts, *volumes})
        and all(set(getattr(old, name)) <= set(getattr(new, name)) for name in _LISTS)
        and "ALL" not in new.cap_add
        and new.runtime in {old.runtime, "nvidia"}
        and bool(new.seccomp)
    )


def _has(delta: SecurityExceptionPlan, found: ContainerProfile) -> bool:
    """Everything in a delta is granted."""
    tmpfs = {row.target: row for row in found.tmpfs}
    volumes = {row.target: row for row in found.volumes}
    return (
        all(set(getattr(delta, name)) <= set(getattr(found, name)) for name in _LISTS)
        and all(
            tmpfs[row.target].size >= row.size and tmpfs[row.target].exec >= row.exec
            for row in delta.tmpfs
        )
        and all(volumes[row.target].read_only <= row.read_only for row in delta.volumes)
        and (not delta.runtime or found.runtime == delta.runtime)
        and (not delta.seccomp or found.seccomp == delta.seccomp)
    )


@settings(deadline=None)
@given(_TAME)
def test_what_only_adds_is_granted_and_nothing_of_the_baseline_is_removed(
    deltas: list[SecurityExceptionPlan],
) -> None:
    """For every list of such deltas, the result covers the baseline and each delta; the baseline itself is unchanged."""
    base = baseline(plan_of())
    before = repr(base)
    merged = merge(base, deltas)
    assert _covers(base, merged)
    assert all(_has(delta, merged) for delta in deltas)
    assert repr(base) == before


@settings(deadline=None)
@given(_WILD)
def test_whatever_is_asked_for_is_refused_or_leaves_the_baseline_whole(
    deltas: list[SecurityExceptionPlan],
) -> None:
    """Mounts over existing mounts, over the image, programs from /tmp, every capability: rejected,
    or not what it seemed."""
    found = _merged(deltas)
    assert isinstance(found, str) or (
        _covers(baseline(plan_of()), found) and all(_has(delta, found) for delta in deltas)
    )


@settings(deadline=None)
@given(st.one_of(_TAME, _WILD), st.randoms(use_true_random=False))
def test_the_order_of_the_deltas_does_not_count(
    deltas: list[SecurityExceptionPlan], random: Random
) -> None:
    """Any permutation produces the same profile, or is rejected too."""
    shuffled = random.sample(deltas, len(deltas))
    one, other = _merged(deltas), _merged(shuffled)
    assert one == other if isinstance(one, ContainerProfile) else isinstance(other, str)


@settings(deadline=None)
@given(_TAME)
def test_merging_twice_adds_nothing(deltas: list[SecurityExceptionPlan]) -> None:
    """A union is idempotent."""
    once = merge(baseline(plan_of()), deltas)
    assert merge(once, deltas) == once


def test_the_check_itself_sees_a_removal() -> None:
    """Positive control: a profile that lost a mount, or a denial, does not cover the baseline."""
    base = baseline(plan_of())
    lost = {item.name: getattr(base, item.name) for item in fields(ContainerProfile)}
    assert _covers(base, base)
    assert not _covers(base, ContainerProfile(**{**lost, "tmpfs": base.tmpfs[1:]}))
    assert not _covers(base, ContainerProfile(**{**lost, "read_only": False}))
    weaker = (*base.tmpfs[:1], replace(base.tmpfs[1], exec=True), *base.tmpfs[2:])
    assert not _covers(base, ContainerProfile(**{**lost, "tmpfs": weaker}))
    assert not _covers(base, ContainerProfile(**{**lost, "cap_add": ("ALL",)}))
    assert not _covers(
        base,
        ContainerProfile(
            **{**lost, "volumes": (*base.volumes, VolumePlan(source="x", target="/etc"))}
        ),
    )


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        ({"runtime": "nvidia"}, {"runtime": "other"}, "runtime 'nvidia', another 'other'"),
        ({"seccomp": "wide"}, {"seccomp": "wider"}, "seccomp 'wide', another 'wider'"),
        (
            {"volumes": (VolumePlan(source="a", target="/x"),)},
            {"volumes": (VolumePlan(source="b", target="/x"),)},
            "cannot mount b at /x: a is mounted there",
        ),
        (
            {"tmpfs": (TmpfsPlan(target="/x", size=1, mode="0700"),)},
            {"volumes": (VolumePlan(source="b", target="/x"),)},
            "cannot mount a volume at /x: a tmpfs is mounted there",
        ),
    ],
)
def test_two_different_wishes_for_one_thing_are_refused(
    one: dict[str, object], two: dict[str, object], said: str
) -> None:
    """No order lets one of them silently win."""
    deltas = [
        SecurityExceptionPlan(key="a", reason="", **one),
        SecurityExceptionPlan(key="b", reason="", **two),
    ]  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=said):
        merge(baseline(plan_of()), deltas)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"cap_add": ("ALL",)}, "adds every capability"),
        ({"tmpfs": (TmpfsPlan(target="/tmp", size=1, mode="1777", exec=True),)}, "lets programs run from /tmp, which the baseline mounts noexec"),
        ({"tmpfs": (TmpfsPlan(target="/opt", size=1, mode="0700"),)}, "hides /opt of the image"),
        ({"tmpfs": (TmpfsPlan(target="/a", size=1, mode="4755"),)}, "mode 4755 of /a has a setuid or setgid bit"),
        ({"volumes": (VolumePlan(source="x", target="/tmp"),)}, "replaces the baseline's mount at /tmp"),
        ({"volumes": (VolumePlan(source="x", target="/var/lib"),)}, "hides /var/lib of the image"),
        ({"volumes": (VolumePlan(source="x", target="/workspace"),)}, "replaces the baseline's mount at /workspace"),
        ({"volumes": (VolumePlan(source="/run/docker.sock", target="/a"),)}, "mounts /run/docker.sock of the host"),
    ],
)  # fmt: skip
def test_what_would_undo_the_baseline_is_refused_by_name(
    asked: dict[str, object], said: str
) -> None:
    """Though no rule was checked before."""
    delta = SecurityExceptionPlan(key="desktop", reason="", **asked)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=said):
        merge(baseline(plan_of()), [delta])


def test_a_tmpfs_of_the_baseline_may_only_grow() -> None:
    """Larger, with its own mode; a smaller request changes nothing."""
    base = baseline(plan_of())
    large, small = (TmpfsPlan(target="/run", size=size, mode="1777") for size in (1 << 30, 1))
    grown = merge(
        base,
        [
            SecurityExceptionPlan(key="a", reason="", tmpfs=(large,)),
            SecurityExceptionPlan(key="b", reason="", tmpfs=(small,)),
        ],
    )
    (run,) = (row for row in grown.tmpfs if row.target == "/run")
    assert (run.size, run.mode, run.exec) == (1 << 30, "0755", False)


def test_a_volume_that_the_baseline_mounts_read_only_stays_so() -> None:
    """A feature's own read-only volume is no less protected than the rest."""
    kept = VolumePlan(source="models", target="/models", read_only=True)
    base = replace(baseline(plan_of()), volumes=(kept,))
    with pytest.raises(PlanError, match="cannot make /models writable"):
        merge(
            base,
            [SecurityExceptionPlan(key="a", reason="", volumes=(replace(kept, read_only=False),))],
        )
    assert merge(base, [SecurityExceptionPlan(key="a", reason="", volumes=(kept,))]).volumes == (
        kept,
    )


def test_without_exceptions_the_profile_is_the_baseline() -> None:
    """uid 1000, read-only root, no capability, no-new-privileges, the shipped seccomp list."""
    found = effective_profile(plan_of())
    assert found == baseline(plan_of())
    assert (found.user, found.read_only, found.cap_drop, found.cap_add) == (
        "1000:1000",
        True,
        ("ALL",),
        (),
    )
    assert (found.no_new_privileges, found.privileged, found.seccomp) == (True, False, "agentbox")
