"""Entries -> origins, each through the host's own configuration of apt, pip or npm."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from agentbox.host.packages.apt import apt_origin
from agentbox.host.packages.npm.npm_pack import NpmPacker
from agentbox.host.packages.origin import FileOrigin
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import pip_config
from agentbox.host.packages.required_lock_files import RequiredFile
from agentbox.host.packages.resolve import apt_roots
from agentbox.plan.lockfile.model import Lock, LockEntry
from agentbox.plan.lockfile.names import store_name

_WORKERS = 8


def find_origins(
    lock: Lock, items: Sequence[RequiredFile], cache: Path, *, fresh: bool = False
) -> list[FileOrigin]:
    """Return an origin for each item; `fresh` updates cached package lists. Raises NotServedError
    for versions that are no longer served, FetchError, PrerequisiteError.
    """
    debian = [item for item in items if item.source == "debian"]
    origins: list[FileOrigin] = []
    for root in (
        apt_roots(cache, lock.suite, sorted({item.arch for item in debian})) if debian else ()
    ):
        origins += apt_origin.origins(
            root, [item.entry for item in debian if item.arch == root.arch], fresh=fresh
        )
    origins += _wheels([item.entry for item in items if item.source == "wheels"])
    origins += _tarballs([item.entry for item in items if item.source == "npm"])
    return origins


def _wheels(entries: Sequence[LockEntry]) -> list[FileOrigin]:
    if not entries:
        return []
    index = Index(pip_config())
    with ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(index.files, {entry.name for entry in entries}))
    missing = [entry for entry in entries if _url(index, entry) is None]
    if missing:
        raise apt_origin.not_served_error(
            missing, {missing[0].name: _newest(index, missing[0].name)}
        )
    return [FileOrigin(entry, url=_url(index, entry) or "", client=index.web) for entry in entries]


def _url(index: Index, entry: LockEntry) -> str | None:
    rows = index.files(entry.name).values()
    return next((row.url for row in rows if store_name(row.file) == entry.file), None)


def _newest(index: Index, project: str) -> str:
    versions = []
    for file in index.files(project):
        try:
            versions.append(parse_wheel_filename(file)[1])
        except InvalidWheelFilename:
            continue
    return str(max(versions)) if versions else "none"


def _tarballs(entries: Sequence[LockEntry]) -> list[FileOrigin]:
    packer = NpmPacker([(entry.name, entry.version) for entry in entries])
    return [
        FileOrigin(entry, make=partial(packer.copy, (entry.name, entry.version)))
        for entry in entries
    ]
