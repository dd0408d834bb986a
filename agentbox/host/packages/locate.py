"""Entries -> origins, source by source, each through the host's own configuration of apt, pip or npm."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from agentbox.host.packages.apt import apt_origin
from agentbox.host.packages.npm.npm_pack import Packer
from agentbox.host.packages.origin import Origin
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import pip_config
from agentbox.host.packages.resolve import apt_roots
from agentbox.host.packages.select import Needed
from agentbox.plan.lockfile.model import Entry, Lock
from agentbox.plan.lockfile.names import store_name

_QUESTIONS = 8


def locate(lock: Lock, items: Sequence[Needed], cache: Path, *, fresh: bool = False) -> list[Origin]:
    """An origin for each item; `fresh` distrusts package lists at hand. Raises NotServedError for versions that are gone, FetchError, PrerequisiteError."""
    debian = [item for item in items if item.source == "debian"]
    found: list[Origin] = []
    for root in apt_roots(cache, lock.suite, sorted({item.arch for item in debian})) if debian else ():
        found += apt_origin.origins(root, [item.entry for item in debian if item.arch == root.arch], fresh=fresh)
    found += _wheels([item.entry for item in items if item.source == "wheels"])
    found += _tarballs([item.entry for item in items if item.source == "npm"])
    return found


def _wheels(entries: Sequence[Entry]) -> list[Origin]:
    if not entries:
        return []
    index = Index(pip_config())
    with ThreadPoolExecutor(_QUESTIONS) as pool:
        list(pool.map(index.files, {entry.name for entry in entries}))
    gone = [entry for entry in entries if _url(index, entry) is None]
    if gone:
        raise apt_origin.not_served(gone, {gone[0].name: _newest(index, gone[0].name)})
    return [Origin(entry, url=_url(index, entry) or "", web=index.web) for entry in entries]


def _url(index: Index, entry: Entry) -> str | None:
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


def _tarballs(entries: Sequence[Entry]) -> list[Origin]:
    packer = Packer([(entry.name, entry.version) for entry in entries])
    return [Origin(entry, make=partial(packer.copy, (entry.name, entry.version))) for entry in entries]
