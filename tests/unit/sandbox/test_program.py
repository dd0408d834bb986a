"""The kernel rules for the program of a feature; a kernel that knows fewer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.core.linux.landlock import PathRule
from agentbox.core.paths import CHECKOUT, Paths
from agentbox.plan.model import Ruleset
from agentbox.sandbox import feature_program
from agentbox.sandbox.seccomp.syscalls import AARCH64, X86_64

BOX = Paths()
TEMPORARY = Path("/tmp/editor.x")


def test_grants_of_the_smallest_ruleset() -> None:
    """The toolchain, names and zones, shared memory by name, its temporary directory: nothing below
    /run, /var/log, /workspace or the state, and nothing else is writable."""
    found = feature_program.grants(Ruleset(), BOX, TEMPORARY)
    written = {
        grant.path
        for grant in found
        if set(grant.letters) & set("wms") and not grant.path.startswith("/dev/")
    }
    assert written == {str(TEMPORARY)}
    assert not [
        grant
        for grant in found
        if grant.path.startswith(("/run", "/var/log", "/workspace", "/var/lib/agentbox"))
    ]
    assert "/" not in {grant.path for grant in found}
    assert PathRule("/usr", "rlx") in found


def test_letters_follow_the_ruleset() -> None:
    """Execute only where it works, create sockets only where it has some, no listing of paths that
    are known by name."""
    ruleset = Ruleset(folders=("/workspace", "/var/lib/agentbox/e"), runs=("/workspace",), unlisted=("/tmp",), reads=("/run/agentbox/secrets/e",))  # fmt: skip
    found = {grant.path: grant.letters for grant in feature_program.grants(ruleset, BOX, TEMPORARY)}
    assert [found[path] for path in ("/workspace", "/var/lib/agentbox/e", "/tmp", "/run/agentbox/secrets/e")] == [
        "rlwmx", "rlwm", "rwm", "rl",
    ]  # fmt: skip
    assert found["/dev/ptmx"] == "rwd"
    shown = {
        grant.path: grant.letters
        for grant in feature_program.grants(Ruleset(folders=("/a",), sockets=True), BOX, TEMPORARY)
    }
    assert (shown["/a"], "/dev/ptmx" in shown) == ("rlwms", False)


def test_paths_of_the_box_move_below_a_prefix(tmp_path: Path) -> None:
    """And those of the host stay."""
    ruleset = Ruleset(
        folders=("/workspace",), reads=("/run/agentbox/secrets/e",), devices=("/dev/null",)
    )
    found = {grant.path for grant in feature_program.grants(ruleset, Paths(tmp_path), TEMPORARY)}
    assert {
        f"{tmp_path}/workspace",
        f"{tmp_path}/run/agentbox/secrets/e",
        "/dev/null",
        "/sys",
    } <= found
    assert "/workspace" not in found


def test_ports() -> None:
    """Its own; with a network also free ones, and never one of the box's."""
    assert feature_program.bindable_ports(Ruleset(listens=(8888,)), (9090, 8888)) == (8888,)
    found = feature_program.bindable_ports(Ruleset(listens=(8888,), network=True), (9090, 8888))
    assert {0, 1024, 8888, 65535} <= set(found)
    assert not {9090, 80} & set(found)
    bounded = Ruleset(network=True, connects=(53, 22))
    assert feature_program.bindable_ports(bounded, (9090,)) == ()


def test_only_the_ports_that_it_may_connect_to() -> None:
    """A fork that is confined reaches the port of its ruleset, and no other of this machine."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    allowed, other = (server.getsockname()[1] for server in servers)
    pid = os.fork()
    if not pid:
        status = 1
        try:
            feature_program.apply(Ruleset(network=True, connects=(allowed,)), (), ())
            socket.socket().connect(("127.0.0.1", allowed))
            with pytest.raises(PermissionError):
                socket.socket().connect(("127.0.0.1", other))
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for server in servers:
        server.close()


@pytest.mark.parametrize("machine", [X86_64, AARCH64])
@pytest.mark.parametrize("network", [True, False])
@pytest.mark.parametrize("sockets", [True, False])
def test_there_is_a_filter_for_each(machine: object, network: bool, sockets: bool) -> None:
    """On both machines, of complete instructions, and within what a kernel accepts."""
    found = feature_program.build(machine, network=network, sockets=sockets)  # type: ignore[arg-type]
    assert len(found) % 8 == 0
    assert 0 < len(found) // 8 < 4096


OLD = """
import json, sys
from agentbox.plan.model import Ruleset
from agentbox.sandbox import feature_program as program
from agentbox.core.linux.landlock import PathRule
try:
    found = program.apply(Ruleset(), [PathRule("/usr", "rlx")], (), abi_override=int(sys.argv[1]), allow_degraded=sys.argv[2:])
except OSError as error:
    found = error.strerror
print(json.dumps(found))
"""


def _on_a_kernel_with(abi: int, *allowed: str) -> object:
    done = subprocess.run(
        [sys.executable, "-c", OLD, str(abi), *allowed], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=120
    )  # fmt: skip
    return json.loads(done.stdout)


def test_an_old_kernel_starts_nothing() -> None:
    """Unless the manifest names every mechanism that it lacks."""
    said = _on_a_kernel_with(3)
    assert isinstance(said, str)
    assert said.startswith("this kernel cannot confine filesystem (")
    assert "signals (" in said
    assert "network (" in said
    assert isinstance(_on_a_kernel_with(0, "filesystem", "signals"), str)


@pytest.mark.parametrize("abi", [0, 3])
def test_what_the_manifest_allows_to_be_missing_is_said(abi: int) -> None:
    """The rest is enforced: with ABI 3 the root is still closed, or nothing would be printed."""
    found = _on_a_kernel_with(abi, "filesystem", "signals", "network")
    assert isinstance(found, dict)
    assert set(found) == {"filesystem", "signals", "network"}
    assert all(f"ABI {abi}" in why for why in found.values())


def test_this_kernel_holds_all_of_it() -> None:
    """The tests of `confined` have a meaning only here."""
    from agentbox.core.linux import landlock

    assert feature_program.missing_mechanisms(Ruleset(), landlock.abi()) == {}
