"""The archive of a generation's image in the Nix store, as a GC root that goes with the generation:
its link is in the generation's folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentbox.host.generations.record import Generation
from agentbox.host.generations.store import GenerationStore

ROOT: Final = "image"


def keep_archive(store: GenerationStore, generation: Generation) -> None:
    """Protects the archive from garbage collection while the generation is kept. Does nothing for
    an image that was not built here. Raises AgentboxError (exit 3, 6).
    """
    if archive_of(store, generation) is not None:
        return
    for archive in _built_archives(store, generation):
        from agentbox.host.packages.store.nix_store import root_paths

        root_paths(store.folder(generation.number) / ROOT, [str(archive)])
        return


def archive_of(store: GenerationStore, generation: Generation) -> Path | None:
    """The archive that the generation keeps, None if it keeps none."""
    folder = store.folder(generation.number) / ROOT
    links = sorted(folder.iterdir()) if folder.is_dir() else []
    return next((link.resolve() for link in links if link.exists()), None)


def _built_archives(store: GenerationStore, generation: Generation) -> Iterator[Path]:
    """What generations with the same image keep, else what was built last, if it is that image."""
    from agentbox.host.image.archive import read_archive

    for other in store.rows():
        if other.image_id == generation.image_id and (found := archive_of(store, other)):
            yield found
    built = store.state.directory / "image"
    if built.exists() and read_archive(built.resolve()).image_id == generation.image_id:
        yield built.resolve()
