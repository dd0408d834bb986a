"""One pass that gives every entry the vector of another model (M9): resumable, and nothing else can search or store meanwhile.

While it is under way the store's model is called `<old>, in part <new>`, which is nobody's: whoever opens the store, or has it
open, is refused. Progress is in the store itself, written with each batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

from agentbox.adapters.memory.embedder import NAME, LazyEmbedder, find_embedder
from agentbox.adapters.memory.reembeddable import PARTIAL_MARKER, ReembeddableStore
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.memory import Embedder
from agentbox.core.slot_errors import AdapterDisabled

BATCH = 200  # entries a commit


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """What a pass came to. `resumed` counts the entries that an earlier one had done."""

    old: str
    new: str
    rewritten: int
    resumed: int


async def reembed(cfg: SlotConfig, on_progress: Callable[[int, int], None]) -> ReembedReport:
    """Rewrites the vectors of a memory slot; `say` is told how many entries of how many are done, after each commit.

    Raises AdapterDisabled for a slot that is off, and whatever the store or the embedder raise.
    """
    store = _store(cfg)
    lazy = find_embedder(str(cfg.option("embedder", NAME)))
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


def _store(cfg: SlotConfig) -> ReembeddableStore:
    if cfg.use == "external-pg":
        from agentbox.adapters.memory.postgres.reembed_store import PgVectors

        return PgVectors(cfg)
    if cfg.use == "local-sqlite":
        from agentbox.adapters.memory.sqlite.reembed_store import SqliteVectors

        return SqliteVectors(cfg)
    raise AdapterDisabled("cannot rewrite vectors: the memory slot is off", slot="memory")
