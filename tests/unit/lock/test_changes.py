"""Changes between locks, and pinned versions."""

from dataclasses import replace

from agentbox.host.packages.changes import diff_locks
from agentbox.host.packages.pins import select_pins
from agentbox.host.packages.required_lock_files import required_files
from agentbox.plan.lockfile.model import BuildTools, DebEntry, Lock, LockEntry, NpmEntry, WheelEntry

SHA = "ab" * 32


def deb(name: str, version: str, *features: str, arch: str = "amd64") -> DebEntry:
    file = f"{name}_{version}_{arch}.deb"
    return DebEntry(
        name=name, version=version, file=file, size=1, sha256=SHA, features=features or ("core",)
    )


def wheel(name: str, version: str, *arch: str, feature: str = "core") -> WheelEntry:
    file = f"{name}-{version}-{arch[0]}.whl"
    return WheelEntry(
        name=name, version=version, file=file, size=1, sha256=SHA, arch=arch, features=(feature,)
    )


LOCK = Lock(
    inputs=f"sha256:{SHA}",
    source="debian",
    suite="trixie",
    python="3.13",
    systems=("aarch64-linux", "x86_64-linux"),
    features=("build", "core"),
    seed={
        arch: BuildTools(
            files=(
                LockEntry(
                    name="busybox-static", version="1", file=f"b_{arch}.deb", size=1, sha256=SHA
                ),
            ),
            nar=f"sha256:{SHA}",
        )
        for arch in ("amd64", "arm64")
    },
    debian={
        "amd64": (
            deb("git", "1"),
            deb("python3", "3.13", "build", "core"),
            deb("doc", "1_all", arch="all"),
        ),
        "arm64": (
            deb("git", "1", arch="arm64"),
            deb("python3", "3.13", "build", arch="arm64"),
            deb("doc", "1_all", arch="all"),
        ),
    },
    wheels=(
        wheel("uvloop", "1", "amd64"),
        wheel("uvloop", "1", "arm64"),
        wheel("installer", "1", "amd64", "arm64", feature="build"),
    ),
    npm=(
        NpmEntry(
            name="x",
            version="1",
            file="x-1.tgz",
            size=1,
            sha256=SHA,
            arch=("arm64",),
            features=("f",),
            paths=("p",),
        ),
    ),
)


def test_changes_are_counted_by_package() -> None:
    """Changed, added, removed: one line each; another file of the same version is no change."""
    amd64 = (deb("git", "2"), deb("python3", "3.13", "core"), deb("vim", "9"))
    new = replace(
        LOCK,
        debian={**LOCK.debian, "amd64": amd64},
        wheels=(wheel("uvloop", "1", "amd64"), *LOCK.wheels[2:]),
    )
    found = diff_locks(LOCK, new)
    assert found.summary == "moved 1, added 1, removed 1"
    assert [str(row) for row in found.rows] == [
        "removed doc 1_all (debian.amd64)",
        "moved git 1 -> 2 (debian.amd64)",
        "added vim 9 (debian.amd64)",
    ]
    assert diff_locks(LOCK, LOCK).summary == "moved 0, added 0, removed 0"
    assert diff_locks(None, LOCK).summary == "moved 0, added 11, removed 0"


def test_pins() -> None:
    """Without names every version is pinned; with names, all but those; an empty list or no lock
    pins none.
    """
    kept = select_pins(LOCK, None)
    assert kept.debian["amd64"] == {"git": "1", "python3": "3.13", "doc": "1_all"}
    assert kept.wheels == {"uvloop": "1", "installer": "1"}
    assert kept.npm == {"p": "1"}
    some = select_pins(LOCK, ["git", "UvLoop"])
    assert "git" not in some.debian["amd64"]
    assert some.wheels == {"installer": "1"}
    assert select_pins(LOCK, []).wheels == select_pins(None, None).wheels == {}


def test_what_a_build_needs() -> None:
    """The packages of the image's architecture, those of the machine that builds the seed, and
    those that only derivations use.
    """
    own = {item.entry.file for item in required_files(LOCK, "x86_64-linux", "x86_64-linux")}
    assert own == {
        "b_amd64.deb",
        "git_1_amd64.deb",
        "python3_3.13_amd64.deb",
        "doc_1_all_all.deb",
        "uvloop-1-amd64.whl",
        "installer-1-amd64.whl",
    }
    cross = {item.entry.file for item in required_files(LOCK, "aarch64-linux", "x86_64-linux")}
    assert {
        "b_amd64.deb",
        "python3_3.13_amd64.deb",
        "git_1_arm64.deb",
        "uvloop-1-arm64.whl",
        "x-1.tgz",
    } <= cross
    assert "git_1_amd64.deb" not in cross
    assert "b_arm64.deb" not in cross
