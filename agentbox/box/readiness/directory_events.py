"""Reports changes in a directory to the running event loop."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agentbox.core.linux.inotify import Inotify


class DirectoryEvents:
    """Calls `on_change` with the names that changed, until closed. Creates the directory. Raises
    OSError.
    """

    def __init__(self, directory: Path, mask: int, on_change: Callable[[list[str]], None]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._inotify = Inotify()
        self._inotify.watch(directory, mask)
        self._on_change = on_change
        asyncio.get_running_loop().add_reader(self._inotify.fd, self._read_events)

    def _read_events(self) -> None:
        if names := self._inotify.read_names():
            self._on_change(names)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._inotify.fd)
        self._inotify.close()
