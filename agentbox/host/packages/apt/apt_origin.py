"""Where Debian packages are fetched from: what this host's apt says of its own mirror."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from agentbox.host.packages.apt.apt import records
from agentbox.host.packages.apt.apt_root import AptRoot
from agentbox.host.packages.apt.control import paragraphs
from agentbox.host.packages.errors import FetchError, NotServedError, ResolveError
from agentbox.host.packages.origin import Origin
from agentbox.host.packages.tool import run
from agentbox.host.packages.transfer.web import Web
from agentbox.plan.lockfile.model import Entry
from agentbox.plan.lockfile.names import store_name

_URI = re.compile(r"^'(?P<uri>[^']+)' (?P<file>\S+)", re.MULTILINE)
_PLAIN = ("http", "https", "file", "copy")


def origins(root: AptRoot, entries: Sequence[Entry], *, fresh: bool = False) -> list[Origin]:
    """An origin for each entry, in order. Lists are updated when `fresh`, else only when those at hand lack a version.

    Raises NotServedError for versions that are gone, FetchError without network, PrerequisiteError without apt.
    """
    if not entries:
        return []
    with root.held():
        if fresh or not root.updated or _gone(root, entries):
            root.update()
        if gone := _gone(root, entries):
            raise not_served(gone, _served(root, gone))
        asked = [f"{entry.name}={entry.version}" for entry in entries]
        done = root.get("download", "--print-uris", *asked, cwd=root.folder)
        if done.code != 0:
            raise FetchError(f"cannot fetch Debian packages: {done.why}")
        uris = {match["file"].rpartition("/")[2]: match["uri"] for match in _URI.finditer(done.out)}
    named = {store_name(file): uri for file, uri in uris.items()}
    return [_origin(root, entry, named.get(entry.file, "")) for entry in entries]


def not_served(gone: Sequence[Entry], served: Mapping[str, str]) -> NotServedError:
    """`cannot fetch git 1:2.47.3-0: the mirror serves 1:2.47.3-1 now`, and how many others."""
    first, names = gone[0], tuple(sorted({entry.name for entry in gone}))
    now = f"serves {served[first.name]} now" if first.name in served else "serves it no more"
    others = f" ({len(names) - 1} others too)" if len(names) > 1 else ""
    return NotServedError(
        f"cannot fetch {first.name} {first.version}: the mirror {now}{others}",
        f"Run `agentbox lock --upgrade {' '.join(names[:5])}`.",
        names,
    )


def _gone(root: AptRoot, entries: Sequence[Entry]) -> list[Entry]:
    """The entries whose version is not in the lists. One that is there with other bytes is refused by its digest."""
    shown = root.show([f"{entry.name}={entry.version}" for entry in entries])
    there = {(fields.get("Package"), fields.get("Version")) for fields in paragraphs(shown.out)}
    return [entry for entry in entries if (entry.name, entry.version) not in there]


def _served(root: AptRoot, gone: Sequence[Entry]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in gone[:1]:
        try:
            found |= {record.name: record.version for record in records(root, [entry.name])}
        except ResolveError:
            continue
    return found


def _origin(root: AptRoot, entry: Entry, uri: str) -> Origin:
    if uri and urlsplit(uri).scheme in _PLAIN and not _has_credentials():
        return Origin(entry, url=uri.replace("copy:", "file:", 1), web=_web(urlsplit(uri).scheme))
    return Origin(entry, make=lambda target: _by_apt(root, entry, target))


def _by_apt(root: AptRoot, entry: Entry, target: Path) -> None:
    done = root.get("download", f"{entry.name}={entry.version}", cwd=target.parent)
    made = next(target.parent.glob("*.deb"), None)
    if done.code != 0 or made is None:
        raise FetchError(f"cannot download {entry.file}: {done.why}", "Connect to the network and try again.")
    made.rename(target)


@cache
def _web(scheme: str) -> Web:
    answer = run(["apt-config", "shell", "PROXY", f"Acquire::{scheme}::Proxy"]).out
    match = re.search(r"^PROXY='(.*)'$", answer, re.MULTILINE)
    proxy = match[1] if match and match[1] != "DIRECT" else ""
    return Web({"proxy": proxy})


@cache
def _has_credentials() -> bool:
    """True when apt keeps passwords for its mirrors (apt_auth.conf(5)); only apt itself may use them."""
    answer = run(["apt-config", "shell", "FILE", "Dir::Etc::netrc/f", "PARTS", "Dir::Etc::netrcparts/d"]).out
    paths = [Path(value) for value in re.findall(r"='(.*)'$", answer, re.MULTILINE)]
    return any(path.is_file() or (path.is_dir() and any(path.iterdir())) for path in paths)
