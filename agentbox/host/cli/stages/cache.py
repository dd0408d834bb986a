"""The cache directory of the operator, also under sudo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.paths import HostPaths
from agentbox.host.engines.sudo_user import chown_tree, make_directory
from agentbox.host.uninstall.inventory import Inventory


@contextmanager
def host_cache() -> Iterator[Path]:
    """Creates the cache directory if missing; under sudo, chowns it to the caller afterwards."""
    cache = HostPaths.for_this_user().cache
    inventory = Inventory.for_this_user()
    if not cache.exists():
        inventory.add("parent", cache)
    inventory.add_directory("cache", cache)
    make_directory(cache)
    try:
        yield cache
    finally:
        chown_tree(cache)
