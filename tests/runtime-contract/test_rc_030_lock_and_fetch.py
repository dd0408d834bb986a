"""RC-030: every row of the table in the lock's specification, with the real apt, pip and Nix against a mirror on loopback."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.checkout import Checkout, unlocked
from harness.locked_once import LockedOnce
from harness.mirror import Deb, Mirror, Wheel
from harness.mirrored_packages import DEBS, WHEELS, serving

from agentbox.host.packages.store.nix_store import flat_path
from agentbox.plan.lockfile.reader import parse_lock


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    with serving(tmp_path) as mirror:
        yield mirror


@pytest.fixture
def checkout(tmp_path: Path, mirror: Mirror) -> Checkout:
    return unlocked(tmp_path, mirror)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> LockedOnce:
    """Ten runs of pip, so that each test does not lock again."""
    folder = tmp_path_factory.mktemp("first")
    with serving(folder) as mirror:
        return LockedOnce.of(unlocked(folder, mirror), mirror)


@pytest.fixture
def locked(checkout: Checkout, mirror: Mirror, first: LockedOnce) -> Checkout:
    """With the files that `lock` writes."""
    first.give(checkout, mirror)
    return checkout


def moved_mirror(mirror: Mirror) -> None:
    """The mirror now serves another git, and no more the locked one."""
    mirror.publish_debs([Deb("git", "1:2.47.3-1", depends="libc6, perl"), *DEBS[1:]])


def test_rc_030_lock_holds_the_closure(first: LockedOnce) -> None:
    """`lock` writes the closure of both sources with the requesters, under the target's markers,
    and no host name; and what the command line requires, for pip."""
    checkout, lock = first.checkout, parse_lock(first.checkout.lock)
    assert {row.name: row.features for row in lock.debian["amd64"]} == {
        "git": ("core",),
        "libc6": ("build", "core"),
        "perl": ("core",),
        "python3": ("build", "core"),
    }
    assert {row.name for row in lock.wheels} == {"uvicorn", "click", "only-new", "installer"}
    assert "moved 0, added 10, removed 0" in first.said
    names = [path.name for path in checkout.requirement_files()]
    assert names == ["requirements.host", "requirements.mcp", "requirements.test"]
    for path in (checkout.lock, *checkout.requirement_files()):
        assert "127.0.0.1" not in path.read_text()
    assert checkout.run("lock", "--check").strip() == "agentbox.lock matches the manifest"


def test_rc_030_versions_are_kept_until_asked(locked: Checkout, mirror: Mirror) -> None:
    """Locking again changes nothing while the mirror serves it; --upgrade changes the named ones."""
    mirror.publish_wheels(
        [*WHEELS, Wheel("click", "8.9"), Wheel("uvicorn", "0.60", ("click", "only-new"))]
    )
    assert "moved 0, added 0, removed 0" in locked.run("lock")
    assert "moved click 8.5.1 -> 8.9" in locked.run("lock", "--upgrade", "click")
    assert "moved uvicorn 0.54.0 -> 0.60" in locked.run("lock", "--upgrade")


def test_rc_030_systems(locked: Checkout) -> None:
    """--system adds a system to the lock, and locking again keeps it."""
    assert parse_lock(locked.lock).systems == ("x86_64-linux",)
    locked.run("lock", "--system", "aarch64-linux", "--system", "x86_64-linux")
    assert parse_lock(locked.lock).systems == ("aarch64-linux", "x86_64-linux")
    locked.run("lock")
    assert set(parse_lock(locked.lock).debian) == {"amd64", "arm64"}


def test_rc_030_other_inputs(locked: Checkout) -> None:
    """A lock for other packages: `lock --check` and `build --locked` exit with 5, `build` locks
    again and prints the changes."""
    locked.want(core=["git", "python3"], build=["python3"], runtime=["uvicorn"], pypi=[])
    expected = "cannot build from agentbox.lock: it was made for other packages"
    assert expected in locked.run("lock", "--check", code=5)
    assert expected in locked.run("build", "--locked", code=5)
    assert "removed installer 1.1.0" in started(locked, "build")
    assert "installer" not in locked.lock.read_text()


def test_rc_030_no_lock(checkout: Checkout) -> None:
    """Without a lock `build --locked` exits with 5 and `build` creates one."""
    assert "Run `agentbox lock`" in checkout.run("build", "--locked", code=5)
    assert "moved 0, added 10, removed 0" in started(checkout, "build")
    assert checkout.lock.exists()


def test_rc_030_version_no_longer_served(locked: Checkout, mirror: Mirror) -> None:
    """A version that no longer exists: --locked exits with 5 and the message, `build` locks just
    that one again and continues."""
    moved_mirror(mirror)
    said = locked.run("build", "--locked", code=5)
    assert "cannot fetch git 1:2.47.3-0: the mirror now serves 1:2.47.3-1" in said
    assert "Run `agentbox lock --upgrade git`" in said
    said = started(locked, "build")
    assert "moved 1, added 0, removed 0" in said
    assert "moved git 1:2.47.3-0 -> 1:2.47.3-1" in said
    assert re.search(r"^  fetch +added \d+ of \d+ files", said, re.MULTILINE)


def test_rc_030_wheel_no_longer_served(locked: Checkout, mirror: Mirror) -> None:
    """The same for a wheel."""
    mirror.publish_wheels(
        [Wheel("click", "8.9"), *(wheel for wheel in WHEELS if wheel.name != "click")]
    )
    said = locked.run("build", "--locked", code=5)
    assert "cannot fetch click 8.5.1: the mirror now serves 8.9" in said
    assert "moved 1, added 0, removed 0" in started(locked, "build")


@pytest.mark.parametrize("pattern", ["perl_*_amd64.deb", "uvicorn-*.whl"])
def test_rc_030_other_bytes(locked: Checkout, mirror: Mirror, pattern: str) -> None:
    """A file whose bytes are not the locked ones is rejected with 4, named, and not stored."""
    served = mirror.file(pattern)
    data = bytearray(served.read_bytes())
    data[-1] ^= 1
    served.write_bytes(data)
    row = next(row for row in parse_lock(locked.lock).entries() if row.name in pattern)
    for flags in ((), ("--locked",)):
        said = locked.run("build", *flags, code=4)
        assert re.search(
            r"cannot accept \S+: its SHA-256 is [0-9a-f]{12}…, the lock has [0-9a-f]{12}…", said
        )
        assert "The mirror or the network changed it." in said
        assert not list((locked.cache / "files").glob(f"{row.sha256}*"))


def test_rc_030_offline(locked: Checkout, mirror: Mirror) -> None:
    """Offline with some files missing: exit 4, how many, how much and which. With all of them no
    network is used. `lock` exits with 4 too and leaves the lock unchanged."""
    mirror.stop()
    for arguments in (("fetch", "--offline"), ("fetch",), ("build",), ("build", "--locked")):
        said = locked.run(*arguments, code=4)
        assert re.search(
            r"cannot fetch \d+ of \d+ files \(0\.3 MB\): no network\. Missing: ", said
        ), said
        assert "Connect to the network, or use `agentbox fetch --from DIR`." in said
    before = locked.lock.read_bytes()
    locked.run("lock", "--upgrade", code=4)
    assert locked.lock.read_bytes() == before


def test_rc_030_everything_at_hand(locked: Checkout, mirror: Mirror) -> None:
    """Once fetched, nothing is requested from the network, not even by a build without --offline;
    --locked continues without any Debian mirror."""
    first = locked.run("fetch")
    total = re.search(r"added (\d+) of (\d+) files", first)
    assert total
    assert total[1] == total[2]
    for row in (*parse_lock(locked.lock).debian["amd64"], *parse_lock(locked.lock).wheels):
        assert Path(flat_path(row)).stat().st_size == row.size
    mirror.stop()
    said = f"all {total[2]} files are in the store; no network needed"
    assert said in locked.run("fetch")
    assert said in locked.run("fetch", "--offline")
    locked.use(None)
    assert re.search(r"^  fetch +unchanged ", started(locked, "build", "--locked"), re.MULTILINE)


def test_rc_030_air_gap(locked: Checkout, mirror: Mirror, tmp_path: Path) -> None:
    """`fetch --to DIR` copies every file and the lock; `fetch --from DIR` refuses another content and names it."""
    folder = tmp_path / "carried"
    locked.run("fetch", "--to", str(folder))
    lock = parse_lock(folder / "agentbox.lock")
    assert lock == parse_lock(locked.lock)
    files = {path.name for path in folder.iterdir()} - {"agentbox.lock"}
    assert files == {row.file for row in lock.entries()}
    mirror.publish_debs([Deb("git", "1:9", depends="libc6"), *DEBS[1:]])
    locked.run("lock", "--upgrade")
    (
        folder / next(row.file for row in parse_lock(locked.lock).entries() if row.name == "git")
    ).write_bytes(b"other")
    mirror.stop()
    assert "its size is 5, the lock has" in locked.run("fetch", "--from", str(folder), code=4)


def test_rc_030_from_a_folder(locked: Checkout, mirror: Mirror, tmp_path: Path) -> None:
    """Files of a directory are used before the network."""
    folder = tmp_path / "carried"
    folder.mkdir()
    for row in parse_lock(locked.lock).entries():
        served = next(
            path
            for path in mirror.folder.rglob("*")
            if path.is_file() and _sha256(path) == row.sha256
        )
        shutil.copyfile(served, folder / row.file)
    mirror.stop()
    assert re.search(r"added (\d+) of \1 files", locked.run("fetch", "--from", str(folder)))


def test_rc_030_without_apt(checkout: Checkout, tmp_path: Path) -> None:
    """No apt on the machine: locking exits with 3 and a message."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "nix", "nix-store"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    checkout.path = str(tools)
    said = checkout.run("lock", code=3)
    assert "cannot resolve Debian packages: apt is not installed" in said
    assert "Lock on a Debian machine; fetching needs no apt if the files are cached." in said


def test_rc_030_without_debian_mirror(checkout: Checkout) -> None:
    """An apt with other sources only: locking exits with 3."""
    checkout.use(None)
    assert "cannot resolve Debian packages: no Debian mirror is configured for apt" in checkout.run(
        "lock", code=3
    )


def test_rc_030_system_not_covered(locked: Checkout) -> None:
    """A system that manifest and lock leave out: exit 5 and how to add it."""
    locked.write_manifest('systems = ["x86_64-linux"]')
    for flags in ((), ("--locked",)):
        said = locked.run("build", "--system", "aarch64-linux", *flags, code=5)
        assert "cannot build for aarch64-linux: the lock covers x86_64-linux" in said
        assert "Add it to image.systems and run `agentbox lock`." in said


def test_rc_030_broken_download_resumes(locked: Checkout, mirror: Mirror) -> None:
    """An interrupted transfer resumes where it broke, by a byte range."""
    perl = mirror.file("perl_*_amd64.deb")
    mirror.cut[perl.name] = 100_000
    locked.run("fetch")
    asked = [line for line in mirror.requests if perl.name in line]
    assert [bool(re.search(r" bytes=[1-9]\d*-$", line)) for line in asked] == [False, True]


def test_rc_030_interrupted_fetch_resumes(locked: Checkout, mirror: Mirror) -> None:
    """Ctrl-C in the middle: exit 130, received bytes are stored, the next fetch requests the rest."""
    perl = mirror.file("perl_*_amd64.deb")
    mirror.hold(perl.name, 100_000)
    running = locked.start("fetch")
    part = locked.cache / "files" / f"{_sha256(perl)}.part"
    _until(lambda: part.exists() and part.stat().st_size == 100_000)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=20)
    assert running.returncode == 130
    mirror.release()
    mirror.requests.clear()
    locked.run("fetch")
    assert f"/debian/pool/main/{perl.name} bytes=100000-" in mirror.requests


def test_rc_030_two_at_once(locked: Checkout, mirror: Mirror) -> None:
    """Two fetches at the same time both end well, and no file is downloaded twice."""
    both = [locked.start("fetch"), locked.start("fetch")]
    said = [running.communicate(timeout=60)[0] for running in both]
    assert [running.returncode for running in both] == [0, 0], said
    debs = [line for line in mirror.requests if line.endswith(".deb")]
    assert sorted(debs) == sorted(set(debs))


def started(checkout: Checkout, *arguments: str) -> str:
    """The output of a build up to Nix. The tiny packages have no Python, so the build fails."""
    running = checkout.start(*arguments)
    said, _ = running.communicate(timeout=120)
    assert running.returncode not in (3, 4, 5), said
    return said


def _sha256(path: Path) -> str:
    from agentbox.core.canonical import file_sha256

    return file_sha256(path)


def _until(condition: object, seconds: float = 20) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "never came true"
