"""Debian packages of another suite, unpacked into a directory of their own: nothing is installed, a
chroot runs them. The rows of a lock name each file by version, size and SHA-256. Files that a
mirror no longer serves are fetched in the version of the suite's signed lists, with a note: a
security update must not stop the tests."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from agentbox.core.paths import HostPaths
from agentbox.core.progress import NullProgress
from agentbox.host.packages.apt.apt_origin import origins
from agentbox.host.packages.apt.apt_resolver import lock_entry, package_records
from agentbox.host.packages.apt.apt_root import AptRoot
from agentbox.host.packages.errors import NotServedError
from agentbox.host.packages.resolve import apt_roots
from agentbox.host.packages.transfer.cache import Cache
from agentbox.host.packages.transfer.download import Downloads
from agentbox.plan.lockfile.model import LockEntry

_JOBS = 8


def unpacked(lock: Path, arch: str) -> Path:
    """The root of that lock's packages, created at the first call and stored in the operator's
    cache. Raises AgentboxError: no network, no apt, other bytes than locked."""
    cache = HostPaths.for_this_user().cache
    table = tomllib.loads(lock.read_text())
    rows = [LockEntry(**row) for row in table[arch]]
    root = (
        cache
        / "peers"
        / f"{lock.parent.name}-{hashlib.sha256(repr(rows).encode()).hexdigest()[:12]}"
    )
    root.parent.mkdir(parents=True, exist_ok=True)
    with root.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (root / "etc/complete").exists():
            shutil.rmtree(root, ignore_errors=True)
            _unpack(_files(cache, str(table["suite"]), arch, rows), root)
    return root


def write_lock(lock: Path, suite: str, names: Mapping[str, Iterable[str]]) -> None:
    """Writes what the suite serves now of these packages, by architecture."""
    text = (
        f"# Written by `python tests/peers/{lock.parent.name}/pin.py`.\nsuite = {_quoted(suite)}\n"
    )
    for root in apt_roots(HostPaths.for_this_user().cache, suite, sorted(names)):
        text += f"\n{root.arch} = [\n"
        for row in _served(root, names[root.arch]):
            fields = {
                name: getattr(row, name) for name in ("name", "version", "file", "size", "sha256")
            }
            cells = ", ".join(f"{name} = {_quoted(value)}" for name, value in fields.items())
            text += f"  {{ {cells} }},\n"
        text += "]\n"
    lock.write_text(text)


def _files(cache: Path, suite: str, arch: str, rows: list[LockEntry]) -> list[Path]:
    store = Cache(cache / "files")
    if missing := [row for row in rows if not store.has(row)]:
        (root,) = apt_roots(cache, suite, [arch])
        try:
            Downloads(store, NullProgress(), _JOBS).run("fetch", origins(root, missing))
        except NotServedError:
            rows = _served(root, [row.name for row in rows])
            moved = [row for row in rows if not store.has(row)]
            sys.stderr.write(
                f"the mirror moved on; taken instead: {', '.join(f'{r.name} {r.version}' for r in moved)}\n"
            )
            Downloads(store, NullProgress(), _JOBS).run("fetch", origins(root, moved))
    return [store.path(row) for row in rows]


def _served(root: AptRoot, names: Iterable[str]) -> list[LockEntry]:
    with root.locked():
        root.update()
        return sorted(lock_entry(found) for found in package_records(root, sorted(names)))


def _unpack(debs: list[Path], root: Path) -> None:
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for deb in debs:
        subprocess.run(["dpkg-deb", "--extract", deb, root], check=True)
    root.chmod(0o755)
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/complete").touch()


def _quoted(value: str | int) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
