"""The generation of a plain `up`: good once the box is ready, and older ones are removed."""

from __future__ import annotations

from agentbox.host.cli.context import CliContext
from agentbox.host.engines.state import BoxRecord
from agentbox.host.generations.pruning import prune
from agentbox.host.generations.record import GOOD
from agentbox.host.generations.recording import confirm
from agentbox.host.generations.store import GenerationStore


def confirm_start(cli: CliContext, record: BoxRecord) -> None:
    """Marks the generation of a box that is ready as good, if it was not before."""
    store = GenerationStore(cli.state())
    current = store.current()
    if current is None or current.number != record.generation or current.verdict == GOOD:
        return
    confirm(store, current.number, {})
    model = cli.load_manifest().effective
    assert model is not None
    prune(store, model.upgrade.keep_generations)
