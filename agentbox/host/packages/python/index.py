"""The main Python package index, by the simple API: JSON (PEP 691), else HTML (PEP 503)."""

import re
import threading
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from packaging.utils import canonicalize_name

from agentbox.host.packages.errors import FetchError
from agentbox.host.packages.python.pip_config import PipConfig
from agentbox.host.packages.transfer.http_client import HttpClient, split_credentials

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


@dataclass(frozen=True)
class IndexFile:
    """A file in the index. `size` None = the index does not state it. `link` is relative to `page`:
    an index has hundreds of files of a project, and few of their addresses are needed.
    """

    file: str
    page: str
    link: str
    sha256: str
    size: int | None
    yanked: bool = False

    @property
    def url(self) -> str:
        return urljoin(self.page, self.link)


class Index:
    """Caches responses; thread-safe."""

    def __init__(self, config: PipConfig) -> None:
        self._url, credentials = split_credentials(config.index_url.rstrip("/"))
        self.web = HttpClient(config.settings, credentials)
        self._cached: dict[str, dict[str, IndexFile]] = {}
        self._lock = threading.Lock()

    def files(self, project: str) -> dict[str, IndexFile]:
        """Return the files of a project by name; empty if the index does not have it. Raises
        FetchError.
        """
        name = canonicalize_name(project)
        with self._lock:
            cached = self._cached.get(name)
        if cached is None:
            cached = self._request_files(f"{self._url}/{name}/")
            with self._lock:
                self._cached[name] = cached
        return cached

    def file_size(self, entry: IndexFile) -> int:
        """Return the size in bytes, from the file's server if the index does not state it."""
        size = entry.size if entry.size is not None else self.web.size(entry.url)
        if size is None:
            raise FetchError(
                f"cannot lock {entry.file}: its server does not state a size",
                "Use an index that does.",
            )
        return size

    def _request_files(self, url: str) -> dict[str, IndexFile]:
        response = self.web.get(url, _ACCEPT)
        if response is None:
            return {}
        final = str(response.url)
        if "json" in response.headers.get("content-type", ""):
            entries = [_parse_entry(final, row) for row in response.json()["files"]]
        else:
            entries = _LinkParser(final).parse(response.text)
        return {entry.file: entry for entry in entries}


def _parse_entry(base: str, row: dict[str, Any]) -> IndexFile:
    sha256, yanked = row.get("hashes", {}).get("sha256", ""), bool(row.get("yanked"))
    return IndexFile(row["filename"], base, row["url"], sha256, row.get("size"), yanked)


class _LinkParser(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self._entries: list[IndexFile] = []

    def parse(self, text: str) -> list[IndexFile]:
        self.feed(text)
        return self._entries

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag != "a" or not values.get("href"):
            return
        link, fragment = urldefrag(values["href"] or "")
        match = re.search(r"sha256=([0-9a-f]{64})", fragment)
        sha256, yanked = match[1] if match else "", "data-yanked" in values
        file = unquote(urljoin(self._base, link).rpartition("/")[2])
        self._entries.append(IndexFile(file, self._base, link, sha256, None, yanked))
