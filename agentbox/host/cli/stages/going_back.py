"""Starting an earlier generation again, and what must be there for that."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.start import store_admin_token
from agentbox.host.engines.base import Engine, StoredStart
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.secrets import collect_secrets
from agentbox.host.engines.state import BoxRecord
from agentbox.host.generations.image_root import archive_of
from agentbox.host.generations.record import Generation
from agentbox.host.generations.store import FILES, PLAN, GenerationStore
from agentbox.host.generations.stores import BoxStores
from agentbox.host.uninstall.inventory import Inventory


def start_again(cli: CliContext, generation: Generation) -> BoxRecord:
    """Starts a generation from its kept files, in place of what runs. Raises AgentboxError."""
    record, state = _record_of(generation), cli.state()
    resources = cli.load_manifest().usable.resources
    engine = engine_by_name(generation.engine)
    store = GenerationStore(state)
    return engine.start_stored(
        StoredStart(
            record=record,
            state=state,
            files=store.folder(generation.number) / FILES,
            volumes=generation.volumes,
            python=generation.python,
            environment=generation.environment,
            passed=generation.passed,
            secrets={
                name: collect_secrets(generation.secrets, cli.manifest, state.secrets_dir).get(
                    name, ""
                )
                for name in generation.secrets
            },
            stop_seconds=resources.stop_seconds,
        )
    )


def store_token_of(cli: CliContext, generation: Generation, record: BoxRecord) -> None:
    """Stores the admin token of a generation that runs again: after a reset it has another one.
    Raises AgentboxError (exit 6).
    """
    plan = json.loads((GenerationStore(cli.state()).folder(generation.number) / PLAN).read_bytes())
    name = plan["api"]["token_env"]
    secrets = collect_secrets([name], cli.manifest, cli.state().secrets_dir) if name else {}
    store_admin_token(cli, record, secrets.get(name, ""))


def require_startable(cli: CliContext, generation: Generation) -> None:
    """Loads the image again if the engine lost it and the Nix store has it. Raises AgentboxError
    (exit 6) if the image or the files of the generation are gone, with the command that makes it
    again.
    """
    store = GenerationStore(cli.state())
    engine = engine_by_name(generation.engine)
    files = store.folder(generation.number) / FILES
    missing = ""
    if not generation.box or not files.is_dir():
        missing = "it never started, or its files are gone"
    elif isinstance(engine, DockerEngine):
        image = generation.image_id or generation.image_ref
        if not engine.has_image(image) and (archive := archive_of(store, generation)):
            Inventory.for_this_user().add("image", image)
            engine.load(archive)
        missing = "" if engine.has_image(image) else f"its image {image} is gone"
    elif (found := code_of(generation.python)) != generation.sources:
        missing = f"the code in {generation.python} is {'another' if found else 'gone'}"
    if missing:
        manifest = files.parent / "agentbox.toml"
        raise AgentboxError(
            f"cannot start generation {generation.number} again: {missing}",
            f"Make it again from its manifest, with the release {generation.release}: "
            f"./agentbox.sh --manifest {manifest} up",
            exit_code=ExitCode.ENGINE,
        )


def code_of(python: str) -> str:
    """The digest of the code that the environment at this prefix runs; "" if there is none."""
    import subprocess
    from pathlib import Path

    program = Path(python) / "bin" / "python"
    code = (
        "from agentbox.host.cli.stages.image import running_source_digest;"
        "print(running_source_digest())"
    )
    if not program.exists():
        return ""
    done = subprocess.run(
        [str(program), "-I", "-c", code], capture_output=True, text=True, check=False, cwd="/"
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def stores_of(
    cli: CliContext,
    engine: Engine,
    generation: Generation,
    runner: Generation,
    other: Generation | None = None,
) -> BoxStores:
    """The stores on the volumes of `generation`, read by the release of `runner`; a return falls
    back to that of `other`."""
    return BoxStores(engine, cli.state(), cli.manifest_info.name, generation, runner, other)


def discard_copies(cli: CliContext, generation: Generation) -> None:
    """Removes the rollback copies of a generation that is forgotten. What cannot be removed is said
    and stays: it costs room only."""
    current = GenerationStore(cli.state()).current_of(generation.engine) or generation
    engine = engine_by_name(generation.engine)
    try:
        stores_of(cli, engine, generation, current, generation).discard(generation.number)
    except AgentboxError as error:
        cli.out.note(error.message)


def put_back(store: GenerationStore, stores: BoxStores, number: int) -> None:
    """Renames the copies of a generation into place, once: its record forgets them then."""
    row = store.get(number)
    if row.copies:
        stores.restore(number, row.copies)
        store.save(replace(row, copies=[]))
    stores.discard(number)


def end_down(
    cli: CliContext, doing: str, error: AgentboxError, current: int, **bad: Any
) -> AgentboxError:
    """Ends a trial whose return cannot be done, so that `up` and `rollback N` proceed; the new
    generation keeps its copies. `bad` is recorded in its row if it has one of its own. Returns the
    error to raise.
    """
    store, state = GenerationStore(cli.state()), cli.state()
    trial = store.trial()
    number, previous = int(trial["number"]), int(trial["previous"])
    rows = [
        replace(row, **bad) if row.number == number != previous else row for row in store.rows()
    ]
    store.replace_all(rows, current, {})
    if (record := state.record()) is not None:
        state.save_record(replace(record, settled=False))
    return AgentboxError(
        f"cannot {doing}: {error.message}; the box is down",
        f"{error.hint} Then run ./agentbox.sh up, or ./agentbox.sh rollback {previous}.".lstrip(),
        exit_code=ExitCode.ENGINE,
    )


def _record_of(generation: Generation) -> BoxRecord:
    record = generation.record
    if record is None:
        raise AgentboxError(
            f"cannot start generation {generation.number} again: it never started",
            "`agentbox generations` lists those that did.",
            exit_code=ExitCode.ENGINE,
        )
    return record
