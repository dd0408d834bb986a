"""One pass that gives every entry the vector of another model (M9): resumable, and nothing else can search or store meanwhile.

While it is under way the store's model is called `<old>, in part <new>`, which is nobody's: whoever opens the store, or has it
open, is refused. Progress is in the store itself, written with each batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

from agentbox.adapters.memory.embedder import NAME, Lazy, find
from agentbox.adapters.memory.renewable import IN_PART, Renewable
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.memory import Embedder
from agentbox.core.slot_errors import AdapterDisabled

BATCH = 200  # entries a commit


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass came to. `resumed` counts the entries that an earlier one had done."""

    old: str
    new: str
    rewritten: int
    resumed: int


async def reembed(cfg: SlotConfig, say: Callable[[int, int], None]) -> Report:
    """Rewrites the vectors of a memory slot; `say` is told how many entries of how many are done, after each commit.

    Raises AdapterDisabled for a slot that is off, and whatever the store or the embedder raise.
    """
    store = _store(cfg)
    lazy = find(str(cfg.option("embedder", NAME)))
    embedder = await lazy.loaded()
    await store.open()
    try:
        return await _pass(store, embedder, lazy, say)
    finally:
        await store.close()


async def _pass(store: Renewable, embedder: Embedder, lazy: Lazy, say: Callable[[int, int], None]) -> Report:
    begun = await store.begin(embedder)
    old = begun.stored.partition(IN_PART)[0]
    if begun.stored in ("", embedder.model_id):
        return Report(old or embedder.model_id, embedder.model_id, 0, 0)
    after, done = begun.after, begun.done
    while batch := await store.texts(after, BATCH):
        found = await embedder.embed([text for _number, text in batch])
        vectors = [
            (number, vector if any(vector) else None) for (number, _text), vector in zip(batch, found, strict=True)
        ]
        after = await store.write(embedder, after, vectors)
        done += len(batch)
        say(done, begun.total)
    await store.finish(embedder, lazy.files)
    return Report(old, embedder.model_id, done - begun.done, begun.done)


def _store(cfg: SlotConfig) -> Renewable:
    if cfg.use == "external-pg":
        from agentbox.adapters.memory.postgres.renewal import PgVectors

        return PgVectors(cfg)
    if cfg.use == "local-sqlite":
        from agentbox.adapters.memory.sqlite.renewal import SqliteVectors

        return SqliteVectors(cfg)
    raise AdapterDisabled("cannot rewrite vectors: the memory slot is off", slot="memory")
