"""Reading and writing a lock keep its bytes; only the writer's form is read."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbox.core.paths import CHECKOUT
from agentbox.plan.lockfile.errors import LockError
from agentbox.plan.lockfile.model import BuildTools, DebEntry, Lock, LockEntry, NpmEntry, WheelEntry
from agentbox.plan.lockfile.names import store_name
from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.lockfile.writer import serialize_lock

SHA = "ab" * 32
SEED = BuildTools(
    files=(LockEntry(name="busybox-static", version="1", file="b.deb", size=1, sha256=SHA),),
    nar=f"sha256:{SHA}",
)
DEB = DebEntry(
    name="git",
    version="1:2.47.3-0",
    file="git_1_2.47.3-0_amd64.deb",
    size=1,
    sha256=SHA,
    features=("core",),
)
WHEEL = WheelEntry(
    name="u", version="1", file="u-1.whl", size=2, sha256=SHA, arch=("amd64",), features=("core",)
)
NPM = NpmEntry(
    name="@s/x",
    version="1",
    file="s-x-1.tgz",
    size=3,
    sha256=SHA,
    arch=("amd64",),
    features=("f",),
    paths=("f/n",),
)
LOCK = Lock(
    inputs=f"sha256:{SHA}",
    source="debian",
    suite="trixie",
    python="3.13",
    systems=("x86_64-linux",),
    features=("build", "core"),
    seed={"amd64": SEED},
    debian={"amd64": (DEB,)},
    wheels=(WHEEL,),
    npm=(NPM,),
)
TEXT = serialize_lock(LOCK).decode()

words = st.text("abcxyz019.+-", min_size=1, max_size=12).filter(
    lambda text: store_name(text) == text
)
rows = st.lists(
    st.builds(
        DebEntry,
        name=words,
        version=words,
        file=words,
        size=st.integers(1, 10**12),
        sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
        features=st.lists(words, max_size=3).map(tuple),
    ),
    unique_by=lambda row: row.file,
    max_size=5,
)


def sorted_rows(found: list[DebEntry]) -> tuple[DebEntry, ...]:
    return tuple(sorted(found, key=lambda row: (row.name, row.version, row.file)))


@given(rows.map(sorted_rows))
def test_a_lock_reads_back(found: tuple[DebEntry, ...]) -> None:
    """read(write(x)) == x, and write(read(b)) == b."""
    lock = replace(LOCK, debian={"amd64": found}, seed={}, wheels=(), npm=())
    assert parse_lock(serialize_lock(lock)) == lock
    assert serialize_lock(parse_lock(serialize_lock(lock))) == serialize_lock(lock)


def test_the_shipped_lock_reads_back() -> None:
    """The lock of this repository is canonical and covers both systems."""
    path = CHECKOUT / "agentbox.lock"
    lock = parse_lock(path)
    assert serialize_lock(lock) == path.read_bytes()
    assert lock.systems == ("aarch64-linux", "x86_64-linux")


def test_one_line_a_file() -> None:
    """Each file is one line, rows in order of name, so that a moved package is one changed line."""
    lines = (
        serialize_lock(replace(LOCK, debian={"amd64": (DEB, replace(DEB, name="a", file="a.deb"))}))
        .decode()
        .splitlines()
    )
    named = [line for line in lines if ".deb" in line and "features" in line]
    assert [line.split('"')[1] for line in named] == ["a", "git"]


def test_there_is_no_such_lock(tmp_path: Path) -> None:
    """A missing lock is exit 5 and names the command to run."""
    with pytest.raises(LockError, match="no such file") as caught:
        parse_lock(tmp_path / "agentbox.lock")
    assert caught.value.exit_code == 5
    assert "agentbox lock" in caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("version = 1\n", "version = 2\n", "version 2 is not supported"),
        (f', sha256 = "{SHA}", features', ", features", "git has no sha256"),
        (f'sha256 = "{SHA}"', 'sha256 = "12"', "busybox-static has no SHA-256"),
        (f'inputs = "sha256:{SHA}"', 'inputs = "12"', "inputs is not a SHA-256"),
        (f'nar = "sha256:{SHA}"', f'nar = "{SHA}"', "nar is not a SHA-256"),
        ("size = 2", "size = 0", "u has no size"),
        ('name = "git", ', 'name = "git", host = "h", ', "unknown key host"),
        ("u-1.whl", "u 1.whl", "a file name that the store refuses"),
        ("\n[wheels]", "\n\n[wheels]", "edited by hand"),
        ("suite = ", "suite: ", "cannot read"),
        ('suite = "trixie"\n', "", "missing key 'suite'"),
    ],
)
def test_other_spellings_are_refused(old: str, new: str, why: str) -> None:
    """Another version, an entry without digest or size, an unknown key, another layout: refused, saying which."""
    assert old in TEXT
    with pytest.raises(LockError, match=why):
        parse_lock(TEXT.replace(old, new, 1).encode())


def test_two_rows_may_not_share_a_file() -> None:
    """One name means one file, in a table and across architectures."""
    twice = replace(LOCK, debian={"amd64": (DEB, replace(DEB, name="other"))})
    with pytest.raises(LockError, match="duplicate row"):
        parse_lock(serialize_lock(twice))
    other = replace(LOCK, debian={"amd64": (DEB,), "arm64": (replace(DEB, sha256="cd" * 32),)})
    with pytest.raises(LockError, match="two different files are named"):
        parse_lock(serialize_lock(other))


@pytest.mark.parametrize(
    ("distributed", "stored"),
    [
        ("git_1%3a2.47.3-0_amd64.deb", "git_1_2.47.3-0_amd64.deb"),
        ("git_1:2.47.3-0~deb13u1_amd64.deb", "git_1_2.47.3-0_deb13u1_amd64.deb"),
        ("torch-2.13.0+cpu.whl", "torch-2.13.0+cpu.whl"),
        ("..hidden", "hidden"),
    ],
)
def test_store_names(distributed: str, stored: str) -> None:
    """What the store refuses becomes an underscore; leading dots go."""
    assert store_name(distributed) == stored
