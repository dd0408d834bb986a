"""Where an entry's bytes come from: a URL that the host's own configuration led to, or one of the host's programs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentbox.host.packages.transfer.http_client import HttpClient
from agentbox.plan.lockfile.model import LockEntry


@dataclass(frozen=True)
class FileOrigin:
    """Exactly one of the two: `url` read through `web`, or `make`, which writes the file at the path it is given."""

    entry: LockEntry
    url: str = ""
    client: HttpClient | None = None
    make: Callable[[Path], None] | None = None
