"""The origin of an entry: a URL from the host's configuration, or a program of the host."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentbox.host.packages.transfer.http_client import HttpClient
from agentbox.plan.lockfile.model import LockEntry


@dataclass(frozen=True)
class FileOrigin:
    """Exactly one of the two: `url`, read through `client`, or `make`, which writes the file to a
    path.
    """

    entry: LockEntry
    url: str = ""
    client: HttpClient | None = None
    make: Callable[[Path], None] | None = None
