"""A granted path is opened over no planted link, and nothing of a closed directory is."""

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.confined_process import run_json

from agentbox.core.linux import renames
from agentbox.core.linux.landlock import PathRule, abi, ruleset
from agentbox.core.linux.path_opener import Boundary, OpenDenied, Opener, resolve_root
from agentbox.sandbox.confinement import Confinement

TRIES = 100_000  # of a race; it ends earlier once it has seen enough of both sides
ENOUGH = 50


def opened(path: Path | str, boundary: Boundary) -> tuple[int, int]:
    with Opener(boundary) as opener:
        told = os.fstat(opener.open(str(path)).descriptor)
    return told.st_dev, told.st_ino


def identity(path: Path) -> tuple[int, int]:
    told = path.lstat()
    return told.st_dev, told.st_ino


@pytest.mark.parametrize("leads", ["{0}/real", "real", "../closed", "{0}/none"])
@pytest.mark.parametrize("below", ["", "/file"])
def test_no_link_of_an_agent_is_followed(tmp_path: Path, leads: str, below: str) -> None:
    """At the end or on the way, absolute or relative, wherever it leads."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(leads.format(tmp_path))
    with pytest.raises(OpenDenied, match="link' is a symbolic link"):
        opened(f"{tmp_path}/link{below}", Boundary())


def test_the_systems_links_are_followed(tmp_path: Path) -> None:
    """Links are followed to their targets, but for a link that an agent put on the way, and not in
    writable directories."""
    system, work = tmp_path / "system", tmp_path / "work"
    for folder in (system / "bin", work):
        folder.mkdir(parents=True)
    (system / "bin/tool-1").touch()
    (system / "bin/tool").symlink_to("tool-1")
    (system / "sbin").symlink_to("bin/../bin")
    (system / "out").symlink_to(work)
    (work / "planted").symlink_to(system / "bin")
    boundary = Boundary(link_roots=(str(system),))
    assert opened(system / "sbin/tool", boundary) == identity(system / "bin/tool-1")
    assert opened(system / "out", boundary) == identity(work)
    with pytest.raises(OpenDenied, match="planted' is a symbolic link"):
        opened(system / "out/planted/tool", boundary)
    with pytest.raises(OpenDenied, match="tool' is a symbolic link"):
        opened(
            system / "bin/tool",
            Boundary(link_roots=(str(system),), writable=(str(system / "bin"),)),
        )


def test_links_that_lead_to_each_other_end(tmp_path: Path) -> None:
    """As the kernel ends them."""
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="is a symbolic link") as caught:
        opened(tmp_path / "one", Boundary(link_roots=(str(tmp_path),)))
    assert caught.value.errno == errno.ELOOP


def test_a_closed_place_is_known_by_what_it_is(tmp_path: Path) -> None:
    """Itself, its content and its parents, also by another name; the agent's own directory in it is
    open."""
    state = tmp_path / "box/state"
    own = state / "branches/one"
    own.mkdir(parents=True)
    (state / "key").touch()
    (own / "file").touch()
    (state / "branches/one-else").mkdir()
    (tmp_path / "system").mkdir()
    (tmp_path / "system/alias").symlink_to(state)
    boundary = Boundary(
        protected=(str(state),), exempt=(str(own),), link_roots=(str(tmp_path / "system"),)
    )
    for path in (
        *(
            "/",
            tmp_path,
            state.parent,
            state,
            state / "key",
            state / "branches",
            state / "branches/one-else",
        ),
        *(tmp_path / "system/alias", tmp_path / "system/alias/key", own / "../one-else"),
    ):
        with pytest.raises(OpenDenied, match="belongs to the control plane"):
            opened(path, boundary)
    assert opened(own / "file", boundary) == identity(own / "file")
    assert opened(tmp_path / "system/alias/branches/one", boundary) == identity(own)
    assert opened(tmp_path / "system", boundary) == identity(tmp_path / "system")


def test_a_closed_place_that_moved_is_still_closed(tmp_path: Path) -> None:
    """Its name proves nothing: the same directory under another one is refused by device and inode."""
    state = tmp_path / "state"
    (state / "in").mkdir(parents=True)
    boundary = Boundary(protected=(str(state),))
    with Opener(boundary) as opener:
        state.rename(tmp_path / "moved")
        for path in (tmp_path / "moved", tmp_path / "moved/in"):
            with pytest.raises(OpenDenied, match="belongs to the control plane"):
                opener.open(str(path))


@contextmanager
def flipping(one: Path, other: Path) -> Iterator[None]:
    """Two entries change places all the time, each at once."""
    over = threading.Event()
    above = os.open(one.parent, os.O_RDONLY | os.O_DIRECTORY)

    def flip() -> None:
        while not over.is_set():
            renames.exchange(above, one.name, above, other.name)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.close(above)


def test_a_link_that_flips_is_never_opened(tmp_path: Path) -> None:
    """(d) While `objects` and a link are swapped, what is opened is the directory or nothing."""
    work, secret = tmp_path / "work", tmp_path / "secret"
    for folder in (work / "objects/in", secret / "in"):
        folder.mkdir(parents=True)
    (work / "link").symlink_to(secret)
    wanted, found, refused = identity(work / "objects/in"), [], 0
    with flipping(work / "objects", work / "link"):
        for _ in range(TRIES):
            try:
                found.append(opened(work / "objects/in", Boundary()))
            except OpenDenied:
                refused += 1
            if min(len(found), refused) >= ENOUGH:
                break
    assert set(found) == {wanted}
    assert refused >= ENOUGH


def test_a_grant_of_a_link_ends_the_start(tmp_path: Path) -> None:
    """Nothing is confined in part: no ruleset is created. A missing path grants nothing, as before."""
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(OpenDenied):
        ruleset([PathRule(str(tmp_path / "link"), "r")], (), abi())
    os.close(ruleset([PathRule(str(tmp_path / "none"), "r")], (), abi()))


def test_attributes_are_no_way_round(tmp_path: Path) -> None:
    """A link in place of a writable directory allows no change of modes at its target."""
    work, state = tmp_path / "work", tmp_path / "state"
    for folder in (work / "out", state):
        folder.mkdir(parents=True)
    (state / "key").touch(mode=0o600)
    grants = tuple(
        PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/proc", "/etc")
    )
    confinement = Confinement(
        grants=(*grants, PathRule(str(work), "rlwm"), PathRule(str(work / "out"), "rlwm"))
    )
    script = """
out, state = sys.argv[1:]
os.rmdir(out); os.symlink(state, out)
said(key=tried(lambda: os.chmod(out + "/key", 0o644)), folder=tried(lambda: os.chmod(out, 0o755)))
"""
    found = run_json(script, confinement, str(work / "out"), str(state))
    assert found == {"key": "EPERM", "folder": "EPERM"}
    assert (state / "key").stat().st_mode & 0o777 == 0o600


def test_only_the_boxs_own_links_are_settled(tmp_path: Path) -> None:
    """A project in place of the workspace; the path below stays as it is written."""
    project, box = tmp_path / "project", tmp_path / "box"
    project.mkdir()
    box.mkdir()
    (box / "workspace").symlink_to(project)
    (project / "proj").symlink_to("/etc")
    roots = (str(box), str(box / "workspace"))
    assert resolve_root(f"{box}/workspace/proj", roots) == f"{project}/proj"
    assert resolve_root(f"{box}/workspace", roots) == str(project)
    assert resolve_root("/usr/bin/python3", roots) == "/usr/bin/python3"
