"""Tells the running event loop what happens in a folder."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from agentbox.core.linux.inotify import Inotify


class FolderEvents:
    """Calls `changed` with the names that something happened to, until closed. Makes the folder. Raises OSError."""

    def __init__(self, folder: Path, mask: int, changed: Callable[[list[str]], None]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._notes = Inotify()
        self._notes.watch(folder, mask)
        self._changed = changed
        asyncio.get_running_loop().add_reader(self._notes.fd, self._look)

    def _look(self) -> None:
        if names := self._notes.names():
            self._changed(names)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._notes.fd)
        self._notes.close()
