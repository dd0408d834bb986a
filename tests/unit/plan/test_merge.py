"""merge: baseline and exceptions give a superset, whatever the exceptions are."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbox.plan.errors import PlanError
from agentbox.plan.merge import Profile, baseline, effective, merge
from agentbox.plan.model import Delta, Device, Tmpfs, Volume
from agentbox.testing.plans import plan_of

_PATHS = st.sampled_from(["/tmp", "/run", "/dev/shm", "/a", "/a/b", "/var/log"])
_WORDS = st.sampled_from(["one", "two", "three"])
_TMPFS = st.builds(Tmpfs, target=_PATHS, size=st.integers(1, 1 << 40), mode=st.just("0700"), exec=st.booleans())
_VOLUMES = st.builds(lambda target, ro: Volume(source=f"v{target}", target=target, read_only=ro), _PATHS, st.booleans())
_DEVICES = st.builds(Device, driver=_WORDS, count=st.integers(-1, 3), capabilities=st.just(("gpu",)))


def _tuples(values: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(values, max_size=3).map(tuple)


_DELTAS = st.builds(
    Delta,
    key=_WORDS,
    reason=st.just("because it must"),
    tmpfs=_tuples(_TMPFS),
    volumes=_tuples(_VOLUMES),
    devices=_tuples(_WORDS),
    group_add=_tuples(_WORDS),
    cap_add=_tuples(_WORDS),
    device_requests=_tuples(_DEVICES),
    runtime=st.sampled_from(["", "nvidia"]),
)


def _covers(old: Profile, new: Profile) -> bool:
    """Every grant of the old one is in the new one, and no denial is gone."""
    denials = ("user", "read_only", "cap_drop", "no_new_privileges", "privileged")
    mounts = {row.target: row for row in new.tmpfs}
    volumes = {row.target: row for row in new.volumes}
    return (
        all(getattr(old, name) == getattr(new, name) for name in denials)
        and all(
            mounts[row.target].size >= row.size and mounts[row.target].exec >= row.exec
            for row in old.tmpfs
            if row.target in mounts
        )
        and {row.target for row in old.tmpfs} <= set(mounts)
        and all(
            row.target in volumes
            and volumes[row.target].source == row.source
            and volumes[row.target].read_only <= row.read_only
            for row in old.volumes
        )
        and all(
            set(getattr(old, name)) <= set(getattr(new, name))
            for name in ("devices", "group_add", "cap_add", "device_requests")
        )
        and new.runtime in {old.runtime, "nvidia"}
    )


@given(st.lists(_DELTAS, max_size=5))
def test_nothing_of_the_baseline_is_ever_removed(deltas: list[Delta]) -> None:
    """For every list of deltas, the result covers the baseline and each delta, and the baseline itself is unchanged."""
    base = baseline(plan_of())
    before = repr(base)
    merged = merge(base, deltas)
    assert _covers(base, merged)
    assert repr(base) == before
    for delta in deltas:
        assert set(delta.devices) <= set(merged.devices)
        assert {row.target for row in delta.tmpfs} <= {row.target for row in merged.tmpfs}


@given(st.lists(_DELTAS, max_size=4))
def test_merging_twice_adds_nothing(deltas: list[Delta]) -> None:
    """A union is idempotent."""
    once = merge(baseline(plan_of()), deltas)
    assert merge(once, deltas) == once


def test_the_check_itself_sees_a_removal() -> None:
    """Positive control: a profile that lost a mount, or a denial, does not cover the baseline."""
    base = baseline(plan_of())
    lost = {item.name: getattr(base, item.name) for item in fields(Profile)}
    assert _covers(base, base)
    assert not _covers(base, Profile(**{**lost, "tmpfs": base.tmpfs[1:]}))
    assert not _covers(base, Profile(**{**lost, "read_only": False}))


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        ({"runtime": "nvidia"}, {"runtime": "other"}, "runtime 'nvidia', another 'other'"),
        ({"seccomp": "wide"}, {"seccomp": "wider"}, "seccomp 'wide', another 'wider'"),
        (
            {"volumes": (Volume(source="a", target="/x"),)},
            {"volumes": (Volume(source="b", target="/x"),)},
            "cannot mount b at /x: a is mounted there",
        ),
    ],
)
def test_two_different_wishes_for_one_thing_are_refused(
    one: dict[str, object], two: dict[str, object], said: str
) -> None:
    """There is no order in which one of them would silently win."""
    deltas = [Delta(key="a", reason="", **one), Delta(key="b", reason="", **two)]  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=said):
        merge(baseline(plan_of()), deltas)


def test_without_exceptions_the_profile_is_the_baseline() -> None:
    """uid 1000, read-only root, no capability, no-new-privileges, the shipped seccomp list."""
    found = effective(plan_of())
    assert found == baseline(plan_of())
    assert (found.user, found.read_only, found.cap_drop, found.cap_add) == ("1000:1000", True, ("ALL",), ())
    assert (found.no_new_privileges, found.privileged, found.seccomp) == (True, False, "agentbox")
