"""The isolation report."""

from dataclasses import replace

import pytest

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.report import MECHANISMS, report
from agentbox.sandbox.spec import Launch

LAUNCH = Launch(
    argv=("x",),
    env={},
    cwd="/",
    roots=("/",),
    memory=100,
    cpu=1.5,
    pids=5,
    fds=64,
    file_size=10,
    private="/private",
    tmp=5,
    branch_disk=10,
    confinement=Confinement(),
)
HELD = {"network": True, "attributes": True, "paths": True, "signals": True, "sockets": True}
MEASURED = {
    "data": 100,
    "nofile": 64,
    "fsize": 10,
    "cpus": 2,
    "nice": 10,
    "no_new_privs": True,
    "uid": 1000,
    "landlock": 7,
    "held": HELD,
}


def states(launch: Launch = LAUNCH, **measured: object) -> dict[str, str]:
    return {name: row["state"] for name, row in report(launch, {**MEASURED, **measured}).items()}


def test_without_a_confinement_all_of_it_is_absent() -> None:
    """No ruleset: filesystem, network, signals, sockets and syscalls are `absent`, with a reason."""
    found = report(LAUNCH, {name: value for name, value in MEASURED.items() if name != "held"})
    assert set(found) == set(MECHANISMS)
    for name in MECHANISMS[:6]:
        assert found[name]["state"] == "absent"
        assert found[name]["why"]
    assert [one["state"] for one in report(replace(LAUNCH, confinement=None), MEASURED).values()][
        :6
    ] == ["absent"] * 6


def test_what_is_held_is_enforced_and_no_more() -> None:
    """A part of a CPU is not, and the descriptors of root that nothing confines are not: `degraded`."""
    found = states()
    assert {name for name, state in found.items() if state == "enforced"} == {
        "network", "signals", "abstract_sockets", "pathname_sockets", "syscalls", "descriptors", "memory", "disk",
        "processes", "filesystem",
    }  # fmt: skip
    assert found["cpu"] == "degraded"
    assert states(uid=0)["descriptors"] == "enforced"
    unconfined = {
        name: value for name, value in MEASURED.items() if name not in ("held", "landlock")
    }
    assert report(LAUNCH, {**unconfined, "uid": 0})["descriptors"]["state"] == "degraded"
    assert states(replace(LAUNCH, private=""))["disk"] == "degraded"


@pytest.mark.parametrize(
    ("denied", "absent"),
    [
        ("paths", {"filesystem"}),
        ("attributes", {"filesystem"}),
        ("signals", {"signals"}),
        ("network", {"network"}),
        ("sockets", {"abstract_sockets", "pathname_sockets", "syscalls"}),
    ],
)
def test_a_try_that_was_not_refused_is_absent(denied: str, absent: set[str]) -> None:
    """Mechanisms that the leader could circumvent are not claimed, whatever was requested."""
    found = states(held={**HELD, denied: False})
    assert {name for name in MECHANISMS[:6] if found[name] == "absent"} == absent


@pytest.mark.parametrize(
    ("ports", "state"), [((), "enforced"), ((443,), "enforced"), (None, "absent")]
)
def test_the_network_is_told_by_its_width(ports: tuple[int, ...] | None, state: str) -> None:
    """The reaper enforces it, and reports which port is open on every address."""
    row = report(replace(LAUNCH, confinement=Confinement(ports=ports)), MEASURED)["network"]
    assert [str(port) in row["why"] for port in ports or ()] == [True] * len(ports or ())
    assert states(replace(LAUNCH, confinement=Confinement(ports=ports)))["network"] == state


def test_processes_are_counted_by_who_answers() -> None:
    """Without a confinement there is no reaper that decides, and sampling is weaker."""
    bare = report(
        LAUNCH,
        {name: value for name, value in MEASURED.items() if name not in ("held", "landlock")},
    )
    assert (bare["processes"]["state"], bare["processes"]["by"]) == ("degraded", "watchdog")
    assert report(LAUNCH, MEASURED)["processes"]["by"] == "reaper"


def test_whole_processors_are_held() -> None:
    """A process cannot change its set; a fraction of a processor is not counted."""
    assert states(replace(LAUNCH, cpu=2))["cpu"] == "enforced"
    assert states()["cpu"] == "degraded"
    assert states(replace(LAUNCH, cpu=2), held={**HELD, "sockets": False})["cpu"] == "degraded"


def test_an_older_kernel_is_told() -> None:
    """Signals that are not enforced are absent, with the ABI as the reason."""
    found = report(LAUNCH, {**MEASURED, "landlock": 3, "held": {**HELD, "signals": False}})
    assert (found["signals"]["state"], found["filesystem"]["state"]) == ("absent", "degraded")
    assert "ABI 3" in found["signals"]["why"]
    assert "ABI 3" in found["filesystem"]["why"]


def test_what_did_not_take_is_absent() -> None:
    """A limit that the kernel did not read back is not claimed."""
    assert states(data=-1)["memory"] == "absent"
    assert states(nofile=1024)["descriptors"] == "absent"
    assert states(cpus=8)["cpu"] == "absent"
    assert states(fsize=-1)["disk"] == "absent"


def test_what_was_not_asked_for_is_absent() -> None:
    """Nothing is enforced where no limit was set."""
    bare = replace(LAUNCH, confinement=None, memory=0, cpu=0, pids=0, fds=0, file_size=0)
    assert set(states(bare).values()) == {"absent"}
