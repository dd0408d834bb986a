"""At the start of agent-host: what a killed one left behind is ended before anything is answered."""

import json
import secrets
import time
from collections.abc import Iterable

import structlog

from agentbox.agents.config import HostConfig
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.store import Store
from agentbox.agents.registry.table import Table
from agentbox.agents.runs import exits, home
from agentbox.agents.streams.log import StreamLog
from agentbox.agents.streams.reader import Reader
from agentbox.contracts.orchestrator import ExitRecord
from agentbox.core.linux import kernel
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError
from agentbox.sandbox.launcher import leftovers, tree

log = structlog.get_logger()
_SECONDS = 10.0


async def mark_of(store: Store) -> str:
    """What the environment of every agent of this box carries; made once a store."""
    found = await store.fact("mark")
    if found is None:
        found = secrets.token_hex(8)
        await store.fact("mark", found)
    return found


async def second_start(store: Store) -> bool:
    """True when an agent-host has run before under the same PID 1."""
    init = tree.look(1)
    now = f"{kernel.boot_id()}:{init.start_ticks if init else 0}"
    return await store.fact("init", now) == now


def end_leftovers(table: Table, config: HostConfig, *, again: bool) -> list[int]:
    """Blocks until none lives; returns the pids that will not die (in the kernel's hands), after 10 s."""
    recorded = [
        leftovers.Recorded(entry.pid, entry.start_ticks, entry.boot_id)
        for entry in table.entries.values()
        if not entry.over and entry.pid is not None
    ]
    look_at_init = config.paths.contained and again
    return leftovers.end_leftovers(
        table.host.mark,
        recorded,
        lambda: _strays(config.paths) if look_at_init else (),
        time.monotonic() + _SECONDS,
    )


def end_folders(table: Table, config: HostConfig) -> None:
    """Deletes what agents that are over still have of their own: the host died between their end and that."""
    for entry in table.entries.values():
        folder = home.of_agent(config.paths, entry.agent_id)
        try:
            if entry.over:
                home.end(folder)
        except OSError as error:
            log.warning("private folder is not removed", folder=str(folder), reason=error.strerror)


def settle(table: Table) -> None:
    """Agents that were alive have the end that readers of their stream were told, else become `lost`; then their restart policy
    applies, but not to one of whose ancestors the row is damaged: what it may do is not known."""
    for entry in list(table.entries.values()):
        if entry.over:
            continue
        entry.pid = None
        if entry.state != "backoff" or entry.exit is None:
            entry.exit = _told(table.streams[entry.agent_id], entry) or exits.lost()
        entry.stop_requested = entry.stop_requested or not table.host.standings.has_family(entry)
        table.revive(entry)


def _told(stream: StreamLog, entry: Entry) -> ExitRecord | None:
    """The end of its last life, where the host died between telling and storing it."""
    try:
        items = Reader(stream, kinds=("exit",)).batch(stream.size + 1)
        ends = [ExitRecord.from_wire(json.loads(one.data)) for one in items if one.generation == entry.generation]
    except (OSError, ValueError, KeyError, TypeError, AdapterError) as error:
        log.warning("what a stream says of an end is not read", agent_id=entry.agent_id, reason=str(error))
        return None
    return ends[-1] if ends else None


def _strays(paths: Paths) -> Iterable[int]:
    """Children of PID 1 that supervisord does not know: orphans of agents. The list is taken before the question."""
    found = leftovers.orphans_of_init(())
    if not found:
        return ()
    from agentbox.box.supervision.rpc import (
        ShuttingDown,
        SupervisorClient,
        SupervisorUnavailable,
    )  # slow, rarely needed

    try:
        supervised = {state.pid for state in SupervisorClient(paths).states().values()}
    except (SupervisorUnavailable, ShuttingDown) as error:
        log.warning("orphans are not looked for", reason=error.message)
        return ()
    return [pid for pid in found if pid not in supervised]
