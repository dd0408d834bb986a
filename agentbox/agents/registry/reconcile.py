"""Startup of agent-host: ends what a killed predecessor left running, before any request is
served."""

import json
import secrets
import time
from collections.abc import Iterable
from functools import partial

import structlog

from agentbox.agents.config import HostConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.registry.sandbox_events import sandbox_ended
from agentbox.agents.registry.store import AgentStore
from agentbox.agents.runs import exits, home
from agentbox.agents.streams.reader import ItemReader
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import ExitRecord
from agentbox.core.linux import kernel
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError
from agentbox.sandbox.launcher import orphans, tree

log = structlog.get_logger()
_KILL_SECONDS = 10.0


async def load_mark(store: AgentStore) -> str:
    """The mark in the environment of every agent of this box; created once per store."""
    mark = await store.fact("mark")
    if mark is None:
        mark = secrets.token_hex(8)
        await store.fact("mark", mark)
    return mark


async def is_restart(store: AgentStore) -> bool:
    """True if an agent-host has run before under the same PID 1."""
    init = tree.read_process(1)
    current = f"{kernel.boot_id()}:{init.start_ticks if init else 0}"
    return await store.fact("init", current) == current


def end_orphans(registry: AgentRegistry, config: HostConfig, *, is_restart: bool) -> list[int]:
    """Block until no orphan runs, at most 10 s; return the pids that do not exit (blocked in the
    kernel)."""
    recorded = [
        orphans.RecordedProcess(entry.pid, entry.start_ticks, entry.boot_id)
        for entry in registry.entries.values()
        if not entry.over and entry.pid is not None
    ]
    check_init = config.paths.is_container and is_restart
    return orphans.kill_orphans(
        registry.host.mark,
        recorded,
        lambda: _find_orphans(config.paths) if check_init else (),
        time.monotonic() + _KILL_SECONDS,
    )


def remove_private_dirs(registry: AgentRegistry, config: HostConfig) -> None:
    """Delete the private directories of ended agents whose host died before it could."""
    for entry in registry.entries.values():
        directory = home.agent_dir(config.paths, entry.agent_id)
        try:
            if entry.over:
                home.remove_private(directory)
        except OSError as error:
            log.warning(
                "cannot remove a private directory", directory=str(directory), reason=error.strerror
            )


def resume_agents(registry: AgentRegistry) -> None:
    """Agents that were running get the exit that readers of their stream have seen, else become
    `lost`; then their restart policy applies, and sessions are suspended. An agent with a damaged
    ancestor is not restarted: its rights are unknown."""
    for entry in list(registry.entries.values()):
        if entry.over or entry.state == "suspended":
            continue
        entry.pid = None
        if entry.state != "backoff" or entry.exit is None:
            entry.exit = (
                _recorded_exit(registry.streams[entry.agent_id], entry) or exits.lost_exit()
            )
        entry.stop_requested = (
            entry.stop_requested or not registry.host.authorizations.has_all_ancestors(entry)
        )
        registry.resume(entry)
        if entry.kind == "sandbox":
            runner = registry.runners[entry.agent_id]
            runner.done.add_done_callback(partial(_on_sandbox_ended, registry, entry))


def _on_sandbox_ended(registry: AgentRegistry, entry: AgentRecord, _: object) -> None:
    registry.start_cleanup(registry.host.save(entry, sandbox_ended(entry, None)))


def _recorded_exit(stream: StreamLog, entry: AgentRecord) -> ExitRecord | None:
    """The exit of the last generation, if the host died between publishing and storing it."""
    try:
        items = ItemReader(stream, kinds=("exit",)).batch(stream.size + 1)
        exits = [
            ExitRecord.from_wire(json.loads(item.data))
            for item in items
            if item.generation == entry.generation
        ]
    except (OSError, ValueError, KeyError, TypeError, AdapterError) as error:
        log.warning(
            "cannot read the exit from a stream", agent_id=entry.agent_id, reason=str(error)
        )
        return None
    return exits[-1] if exits else None


def _find_orphans(paths: Paths) -> Iterable[int]:
    """Children of PID 1 that supervisord does not know. They are listed before supervisord is
    asked."""
    children = orphans.find_orphans_of_init(())
    if not children:
        return ()
    from agentbox.box.supervision.rpc import (
        ShuttingDown,
        SupervisorClient,
        SupervisorUnavailable,
    )  # slow to import, rarely needed

    try:
        supervised = {state.pid for state in SupervisorClient(paths).states().values()}
    except (SupervisorUnavailable, ShuttingDown) as error:
        log.warning("cannot search for orphaned processes", reason=error.message)
        return ()
    return [pid for pid in children if pid not in supervised]
