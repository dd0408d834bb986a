"""Packages that a manifest requires, and whether a lock satisfies it."""

from pathlib import Path

import pytest

from agentbox.host.packages.apt.suite_versions import suite_by_name
from agentbox.host.packages.errors import ResolveError
from agentbox.host.packages.lock_ensurer import lock_path
from agentbox.host.packages.lock_inputs import (
    debian_lists,
    host_system,
    lock_inputs,
    python_lists,
    read_lock,
    unused_debian,
)
from agentbox.host.packages.npm import npm_resolver
from agentbox.host.packages.relock import check_inputs, replace_file, require_system
from agentbox.manifest.features.model import Feature, Gate
from agentbox.manifest.load import Manifest, parse
from agentbox.manifest.skills.corpus import shipped_digests
from agentbox.plan.lockfile.errors import LockError
from agentbox.plan.lockfile.inputs import LockInputs
from agentbox.plan.lockfile.model import Lock
from agentbox.plan.lockfile.writer import serialize_lock

FEATURES = {
    "core": Feature(name="core", debian=("git",)),
    "build": Feature(name="build", debian=("python3",), pypi=("installer",)),
    "node": Feature(name="node", gate=Gate(key="meta.dev", values=(True,)), debian=("nodejs",)),
}


def manifest(text: str = "") -> Manifest:
    return parse(f"[meta]\nschema_version = 1\n{text}".encode(), "agentbox.toml")


def asked(text: str = "", lock: Path | None = None, systems: tuple[str, ...] = ()) -> LockInputs:
    return lock_inputs(manifest(text), lock=lock, systems=systems, features=FEATURES)


def lock_for(inputs: LockInputs, path: Path) -> Path:
    """An empty lock for these inputs."""
    lock = Lock(
        skills=shipped_digests(),
        inputs=inputs.digest(),
        source=inputs.source,
        suite=inputs.suite,
        python=inputs.python,
        systems=inputs.systems,
        features=tuple(sorted(inputs.features)),
    )
    path.write_bytes(serialize_lock(lock))
    return path


def test_lists_by_feature() -> None:
    """Extra packages and the application's requirements belong to core; disabled features have
    none.
    """
    inputs = asked('[image]\nextra_packages = ["vim"]')
    assert debian_lists(inputs) == {"core": ("git", "vim"), "build": ("python3",)}
    assert python_lists(inputs)["build"] == ("installer",)
    assert any(text.startswith("starlette") for text in python_lists(inputs)["core"])
    assert "node" in asked("dev = true").features


def test_unused_dependencies_are_inputs() -> None:
    """Both sources list omitted packages, and a change of the list makes a lock stale."""
    inputs = asked()
    assert unused_debian(inputs) == {}
    assert "pydantic" in inputs.unused_requirements["wordllama"]
    fewer = {
        **FEATURES,
        "core": Feature(name="core", debian=("git",), unused_dependencies={"git": ("perl",)}),
    }
    without = lock_inputs(manifest(), features=fewer)
    assert unused_debian(without) == {"git": ("perl",)}
    assert without.digest() != inputs.digest()


def test_a_log_level_needs_no_new_lock() -> None:
    """Only keys that affect packages are in the digest."""
    assert asked('[observability]\nlog_level = "warn"').digest() == asked().digest()
    assert asked('[image]\nextra_packages = ["vim"]').digest() != asked().digest()


def test_systems(tmp_path: Path) -> None:
    """The manifest's systems, else this machine's and those in the lock."""
    named = asked('[image]\nsystems = ["aarch64-linux"]')
    assert named.systems == ("aarch64-linux",)
    assert asked().systems == (host_system(),)
    both = ("aarch64-linux", "x86_64-linux")
    path = lock_for(asked(systems=both), tmp_path / "agentbox.lock")
    assert asked(lock=path).systems == both
    assert check_inputs(path, asked(lock=path)).systems == both
    with pytest.raises(ResolveError, match="cannot lock for riscv64-linux"):
        asked(systems=("riscv64-linux",))


def test_suites() -> None:
    """A suite determines Python and C library; an unknown one is rejected with the known ones."""
    assert (suite_by_name("trixie").python, suite_by_name("trixie").glibc_minor) == ("3.13", 41)
    with pytest.raises(
        ResolveError, match="cannot lock for suite sid: supported are bookworm and trixie"
    ):
        asked('[image]\nsuite = "sid"')


def test_checking_a_lock(tmp_path: Path) -> None:
    """A missing lock, one for other packages and one for other systems: exit 5 with a message
    each.
    """
    path = tmp_path / "agentbox.lock"
    with pytest.raises(LockError, match="not found beside the manifest"):
        check_inputs(path, asked())
    lock = check_inputs(lock_for(asked(), path), asked())
    with pytest.raises(LockError, match=r"made for other packages \(feature node was added\)"):
        check_inputs(path, asked("dev = true"))
    other = next(system for system in ("aarch64-linux", "x86_64-linux") if system != host_system())
    with pytest.raises(
        LockError, match=f"cannot build for {other}: the lock covers {host_system()}"
    ) as caught:
        require_system(lock, other)
    assert caught.value.exit_code == 5


def test_the_lock_beside_the_manifest_counts(tmp_path: Path) -> None:
    """The lock beside the manifest; else the checkout's; beside the manifest if there is
    neither.
    """
    checkout, away = tmp_path / "checkout", tmp_path / "away"
    checkout.mkdir()
    away.mkdir()
    beside = away / "agentbox.lock"
    assert lock_path(away / "agentbox.toml", checkout) == beside
    (checkout / "agentbox.lock").touch()
    assert lock_path(away / "agentbox.toml", checkout) == checkout / "agentbox.lock"
    beside.touch()
    assert lock_path(away / "agentbox.toml", checkout) == beside


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    """A replaced file is readable by everyone; a failed write leaves the old file and nothing
    else.
    """
    path = tmp_path / "agentbox.lock"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o644)
    with pytest.raises(TypeError):
        replace_file(path, "no bytes")  # type: ignore[arg-type]
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [
        ("agentbox.lock", b"two")
    ]


@pytest.mark.parametrize(
    ("row", "archs"),
    [
        ({}, ["amd64", "arm64"]),
        ({"cpu": ["x64"], "os": ["linux"]}, ["amd64"]),
        ({"cpu": ["!x64"]}, ["arm64"]),
        ({"os": ["darwin"]}, []),
        ({"os": ["!linux"]}, []),
        ({"libc": ["musl"]}, []),
        ({"libc": ["glibc"], "cpu": ["arm64"]}, ["arm64"]),
    ],
)
def test_npm_packages_by_machine(row: dict[str, list[str]], archs: list[str]) -> None:
    """`os`, `cpu` and `libc` of a package decide, with exclusions."""
    assert [arch for arch in ("amd64", "arm64") if npm_resolver._supports(row, arch)] == archs


def test_a_lock_is_parsed_once_for_each_content(tmp_path: Path) -> None:
    """The same file again is the same object, another content is not; a missing file is named."""
    path = tmp_path / "agentbox.lock"
    with pytest.raises(LockError, match=f"cannot read {path}: no such file"):
        read_lock(path)
    lock_for(asked(systems=("x86_64-linux",)), path)
    first = read_lock(path)
    assert read_lock(path) is first
    lock_for(asked(systems=("aarch64-linux", "x86_64-linux")), path)
    assert read_lock(path) != first
    path.write_text("no lock")
    with pytest.raises(LockError, match=f"cannot read {path}"):
        read_lock(path)
