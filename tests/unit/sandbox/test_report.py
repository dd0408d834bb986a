"""The isolation report."""

from dataclasses import replace

from agentbox.sandbox import Launch
from agentbox.sandbox.report import MECHANISMS, report

LAUNCH = Launch(argv=("x",), env={}, cwd="/", roots=("/",), memory=100, cpu=1.5, pids=5, fds=64, file_size=10)
MEASURED = {"data": 100, "nofile": 64, "fsize": 10, "cpus": 2, "nice": 10, "no_new_privs": True, "uid": 1000}


def states(launch: Launch = LAUNCH, **measured: object) -> dict[str, str]:
    return {name: row["state"] for name, row in report(launch, {**MEASURED, **measured}).items()}


def test_what_nobody_confines_yet_is_absent() -> None:
    """No ruleset: filesystem, network, signals, sockets and syscalls are `absent`, with a reason."""
    found = report(LAUNCH, MEASURED)
    assert tuple(found) == MECHANISMS
    for name in MECHANISMS[:6]:
        assert found[name]["state"] == "absent"
        assert found[name]["why"]


def test_only_descriptors_are_enforced() -> None:
    """The one bound that holds against a hostile agent today is the kernel's on open files."""
    assert [name for name, state in states().items() if state == "enforced"] == ["descriptors"]
    assert states(uid=0)["descriptors"] == "degraded"


def test_what_did_not_take_is_absent() -> None:
    """A limit that the kernel did not read back is not claimed."""
    assert states(data=-1)["memory"] == "absent"
    assert states(nofile=1024)["descriptors"] == "absent"
    assert states(cpus=8)["cpu"] == "absent"
    assert states(fsize=-1)["disk"] == "absent"


def test_what_was_not_asked_for_is_absent() -> None:
    """Nothing holds where no limit was given."""
    bare = replace(LAUNCH, memory=0, cpu=0, pids=0, fds=0, file_size=0)
    assert set(states(bare).values()) == {"absent"}
