"""The generation of a plain `up`: good once the box is ready, and older ones are removed."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.going_back import discard_copies
from agentbox.host.engines.state import BoxRecord
from agentbox.host.generations.image_root import keep_archive
from agentbox.host.generations.pruning import prune
from agentbox.host.generations.record import GOOD, TRIAL, Generation
from agentbox.host.generations.recording import confirm, mark_bad
from agentbox.host.generations.store import GenerationStore


def confirm_start(cli: CliContext, record: BoxRecord) -> None:
    """Marks the generation of a box that is ready as good, if it was not before."""
    store = GenerationStore(cli.state())
    current = store.current()
    if current is None or current.number != record.generation:
        return
    keep_image(cli, current)
    if current.verdict == GOOD:
        return
    confirm(store, current.number, _migrations(cli))
    model = cli.load_manifest().effective
    assert model is not None
    prune(store, model.upgrade.keep_generations, partial(discard_copies, cli))


def keep_image(cli: CliContext, generation: Generation) -> None:
    """Makes the image of a generation outlast a collection of the Nix store. A failure is a note,
    since the engine has the image too.
    """
    if generation.engine != "docker" or not generation.image_id:
        return
    try:
        keep_archive(GenerationStore(cli.state()), generation)
    except AgentboxError as error:
        cli.out.note(error.message)


def release_hold(cli: CliContext) -> None:
    """Ends the hold of a box that is in no trial: an interruption left it. Does nothing for a
    release without generations. Raises AgentboxError if it cannot be ended.
    """
    with cli.client() as client:
        try:
            held = client.generation.show().held
        except AgentboxError:
            return
        if held:
            client.generation.release()
            cli.out.note("the box was held by an upgrade that has ended: it is released")


def _migrations(cli: CliContext) -> dict[str, int]:
    """The migration of each store; empty for a release without that route."""
    with suppress(AgentboxError), cli.client() as client:
        return {name: row.migration for name, row in client.generation.show().stores.items()}
    return {}


def mark_failed(cli: CliContext, record: BoxRecord, error: AgentboxError) -> AgentboxError:
    """Marks the generation of a start that failed, and names the way back if there is one."""
    store = GenerationStore(cli.state())
    current = store.current()
    if current is None or current.number != record.generation or current.verdict != TRIAL:
        return error
    reason, _, log = error.message.partition("\n")
    mark_bad(store, current.number, reason, log.splitlines())
    if not any(row.verdict == GOOD for row in store.rows()):
        return error
    return AgentboxError(
        error.message,
        f"{error.hint} To go back: ./agentbox.sh rollback",
        exit_code=error.exit_code,
    )
