"""The cache folder of the operator, used by a command that may run under sudo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.paths import HostPaths
from agentbox.host.engines.sudo_user import chown_tree, make_directory


@contextmanager
def host_cache() -> Iterator[Path]:
    """The cache folder, made if missing; under sudo, whatever came into it belongs to the caller afterwards."""
    cache = HostPaths.for_this_user().cache
    make_directory(cache)
    try:
        yield cache
    finally:
        chown_tree(cache)
