"""Rewrites the vectors of all entries with another model (M9). The pass is resumable and blocks
searches and stores.

During the pass the stored model is `<old>, in part <new>`, which matches no embedder, so that every
box is refused. The progress is stored with each batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentbox.adapters.memory.embedder import LazyEmbedder, find_embedder
from agentbox.adapters.memory.reembeddable import PARTIAL_MARKER, ReembeddableStore
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.memory import Embedder
from agentbox.core.slot_errors import AdapterDisabled
from agentbox.manifest.declarations.options import Options
from agentbox.manifest.slot_options import MemoryOptions

BATCH = 200  # entries per commit


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """The result of a pass. `resumed` counts the entries done by earlier passes."""

    old: str
    new: str
    rewritten: int
    resumed: int


async def reembed(
    cfg: SlotConfig[Options], on_progress: Callable[[int, int], None]
) -> ReembedReport:
    """Rewrite the vectors of a memory slot. `on_progress` is called after each commit with the
    number of done and of all entries.

    Raises AdapterDisabled if the slot is off, and the errors of store and embedder.
    """
    store = _store(cfg)
    lazy = find_embedder(MemoryOptions.of(cfg.options).embedder)
    embedder = await lazy.get()
    await store.open()
    try:
        return await _run_pass(store, embedder, lazy, on_progress)
    finally:
        await store.close()


async def _run_pass(
    store: ReembeddableStore,
    embedder: Embedder,
    lazy: LazyEmbedder,
    on_progress: Callable[[int, int], None],
) -> ReembedReport:
    cursor = await store.begin(embedder)
    old = cursor.stored.partition(PARTIAL_MARKER)[0]
    if cursor.stored in ("", embedder.model_id):
        return ReembedReport(old or embedder.model_id, embedder.model_id, 0, 0)
    after, done = cursor.after, cursor.done
    while batch := await store.texts(after, BATCH):
        embedded = await embedder.embed([text for _number, text in batch])
        vectors = [
            (number, vector if any(vector) else None)
            for (number, _text), vector in zip(batch, embedded, strict=True)
        ]
        after = await store.write(embedder, after, vectors)
        done += len(batch)
        on_progress(done, cursor.total)
    await store.finish(embedder, lazy.files)
    return ReembedReport(old, embedder.model_id, done - cursor.done, cursor.done)


def _store(cfg: SlotConfig[Any]) -> ReembeddableStore:
    if cfg.use == "external-pg":
        from agentbox.adapters.memory.postgres.reembed_store import PgReembedStore

        return PgReembedStore(cfg)
    if cfg.use == "local-sqlite":
        from agentbox.adapters.memory.sqlite.reembed_store import SqliteReembedStore

        return SqliteReembedStore(cfg)
    raise AdapterDisabled("cannot rewrite vectors: the memory slot is off", slot="memory")
