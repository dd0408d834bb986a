"""Writes the record of what a start makes: before it, after it, and once the box is ready."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Final

from agentbox import __version__
from agentbox.core.canonical import canonical_json, digest
from agentbox.core.errors import AgentboxError
from agentbox.core.files.atomic_text import wrap_os_errors, write_atomically
from agentbox.core.paths import environment
from agentbox.host.engines.base import Engine, StartSpec
from agentbox.host.engines.state import BoxRecord, BoxState
from agentbox.host.generations.record import BAD, GOOD, TRIAL, Generation
from agentbox.host.generations.store import FILES, LOCK, MANIFEST, PLAN, GenerationStore

_LOG_LINES: Final = 20


def inputs_key(engine: str, start: StartSpec) -> str:
    """The digest of all that a generation is made of: equal inputs are the same generation."""
    parts = [engine, start.made_of, start.plan.digest, digest(start.lock), dict(start.volumes)]
    return digest(canonical_json(parts))


def begin(engine: Engine, start: StartSpec) -> Generation:
    """Records what is about to be started: the generation with equal inputs that ran last or was
    about to start, else a new one.
    """
    store = GenerationStore(start.state)
    described = describe(engine, start)
    current, rows = store.current(), store.rows()
    last = rows[-1] if rows else None
    before = 0 if current is None else current.number
    if current is not None and current.key == described.key:
        verdict = TRIAL if current.verdict == BAD else current.verdict
        generation = replace(current, verdict=verdict)
    elif last is not None and last.key == described.key and not last.box:
        generation = replace(last, before=before, verdict=TRIAL, reason="", log=[])
    else:
        generation = replace(
            described, number=store.next_number(), before=before, by=invoker(), at=now()
        )
    _write_inputs(store, generation.number, start)
    store.save(generation)
    return generation


def started(engine: Engine, start: StartSpec, number: int, record: BoxRecord) -> BoxRecord:
    """Records the start itself; the generation is the current one from here on."""
    store = GenerationStore(start.state)
    record = replace(record, generation=number)
    engine.store_files(start, store.folder(number) / FILES)
    store.save(replace(store.get(number), box=asdict(record)), current=True)
    return record


def amend(engine: Engine, start: StartSpec, record: BoxRecord, last: BoxRecord) -> BoxRecord:
    """Records keys that took effect without a new container, so that going back brings back what
    ran last. A box that an earlier release started has no generation until it is made anew."""
    store = GenerationStore(start.state)
    current = store.current()
    if current is None or last.generation != current.number:
        return record
    record = replace(record, generation=current.number)
    described = describe(engine, start)
    kept = {
        name: getattr(current, name)
        for name in (
            *("number", "before", "by", "at", "verdict", "pinned"),
            *("copies", "noted", "migrations", "snapshot"),
        )
    }
    _write_inputs(store, current.number, start)
    engine.store_files(start, store.folder(current.number) / FILES)
    store.save(replace(described, **kept, confirmed=current.confirmed, box=asdict(record)))
    return record


def confirm(store: GenerationStore, number: int, migrations: Mapping[str, int]) -> None:
    """Marks a generation good; the one before it is superseded."""
    store.confirm(
        number,
        verdict=GOOD,
        reason="",
        log=[],
        confirmed=now(),
        migrations=dict(migrations) or dict(store.get(number).migrations),
    )


def mark_bad(store: GenerationStore, number: int, reason: str, lines: list[str]) -> None:
    """Marks a generation bad, with the reason and the last lines of its log."""
    generation = store.get(number)
    store.save(replace(generation, verdict=BAD, reason=reason, log=lines[-_LOG_LINES:]))


def start_failed(state: BoxState, number: int, error: AgentboxError) -> AgentboxError:
    """Marks a generation whose container could not be made as bad, and names the way back if there
    is one; one that ran before keeps its verdict. Returns the error to raise."""
    store = GenerationStore(state)
    if not (generation := store.get(number)).box and generation.verdict == TRIAL:
        mark_bad(store, number, error.message.partition("\n")[0], [])
    if not any(row.verdict == GOOD and row.box for row in store.rows()):
        return error
    hint = f"{error.hint} To go back: ./agentbox.sh rollback".lstrip()
    return AgentboxError(error.message, hint, exit_code=error.exit_code)


def now() -> str:
    """The time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def invoker() -> str:
    """The name of the user who runs the command, under sudo of the calling one; else the uid."""
    import pwd

    if sudo_user := environment().get("SUDO_USER"):
        return sudo_user
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def describe(engine: Engine, start: StartSpec) -> Generation:
    """The generation that a start would make, without a number."""
    return Generation(
        release=__version__,
        engine=engine.name,
        image_ref=start.image_ref,
        image_id=start.image_id,
        image_digest=start.image_ref.partition("@")[2],
        plan_digest=start.plan.digest,
        manifest_digest=start.plan.digests.manifest,
        lock_digest=start.plan.digests.lock,
        key=inputs_key(engine.name, start),
        sources=start.sources,
        python=sys.prefix if engine.name == "process" else "",
        folder="" if engine.name == "process" else str(start.state.compose_dir),
        volumes=dict(start.volumes),
        environment=start.settings,
        passed=list(start.plan.passed),
        secrets=list(start.plan.secrets),
    )


def _write_inputs(store: GenerationStore, number: int, start: StartSpec) -> None:
    from agentbox.plan.render.files import plan_text

    folder = store.folder(number)
    with wrap_os_errors(f"make {folder}"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(folder / MANIFEST, start.manifest)
    write_atomically(folder / PLAN, plan_text(start.plan))
    write_atomically(folder / LOCK, start.lock)
