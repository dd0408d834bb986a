"""At the start of agent-host: what a killed one left behind is ended before anything is answered."""

import secrets
import time
from collections.abc import Iterable

import structlog

from agentbox import kernel
from agentbox.agents import exits, home
from agentbox.agents.config import HostConfig
from agentbox.agents.store import Store
from agentbox.agents.table import Table
from agentbox.sandbox import leftovers, tree
from agentbox.settings import Paths

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
    """Rows of agents that were alive become `lost`; then their restart policy applies, but not to one of whose ancestors the row
    is damaged: what it may do is not known."""
    for entry in list(table.entries.values()):
        if entry.over:
            continue
        entry.pid = None
        if entry.state != "backoff" or entry.exit is None:
            entry.exit = exits.lost()
        entry.stop_requested = entry.stop_requested or not table.host.standings.has_family(entry)
        table.revive(entry)


def _strays(paths: Paths) -> Iterable[int]:
    """Children of PID 1 that supervisord does not know: orphans of agents. The list is taken before the question."""
    found = leftovers.orphans_of_init(())
    if not found:
        return ()
    from agentbox.supervision.rpc import ShuttingDown, SupervisorClient, SupervisorUnavailable  # slow, rarely needed

    try:
        supervised = {state.pid for state in SupervisorClient(paths).states().values()}
    except (SupervisorUnavailable, ShuttingDown) as error:
        log.warning("orphans are not looked for", reason=error.message)
        return ()
    return [pid for pid in found if pid not in supervised]
