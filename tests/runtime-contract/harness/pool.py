"""One box at a time: every box of the contract has the same name and ports. Tests that only read share one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.box import Box
from harness.container import DockerBox, remove_network
from harness.images import Images
from harness.outcomes import Options
from harness.process import ProcessBox


class Pool:
    """Returns boxes; any box in the way is removed first."""

    def __init__(self, folder: Path, images: Images) -> None:
        self._folder = folder
        self._images = images
        self._made = 0
        self._box: Box | None = None
        self._shared = ""
        self._starts: dict[str, list[dict[str, Any]]] = {}

    def fresh(self, engine: str, **options: Any) -> Box:
        """A box that is not started yet."""
        self.clear()
        self._box = self._new(engine, Options(**options))
        return self._box

    def shared(self, engine: str) -> Box:
        """The running, ready box of the contract's manifest that this engine's read-only tests share."""
        if self._shared != engine or self._box is None:
            box = self.fresh(engine)
            box.start()
            box.wait_ready()
            self._shared = engine
            box.event("BootstrapCompleted")  # its log may be a moment behind
            self._starts[engine] = box.events()
        assert self._box is not None
        return self._box

    def start_events(self, engine: str) -> list[dict[str, Any]]:
        """What the shared box of this engine had reported when it was ready."""
        if engine not in self._starts:
            self.shared(engine)
        return self._starts[engine]

    def clear(self) -> None:
        """Removes the present box, if any."""
        box, self._box, self._shared = self._box, None, ""
        if box is not None:
            box.remove()

    def close(self) -> None:
        """Leaves nothing."""
        self.clear()
        remove_network()

    def _new(self, engine: str, options: Options) -> Box:
        self._made += 1
        folder = self._folder / str(self._made)
        return (
            DockerBox(folder, self._images, options)
            if engine == "docker"
            else ProcessBox(folder, options)
        )
