"""What must not come back with a state: sessions, tokens that may have been revoked since, agents
that ran, and with another name the identity of the box.
"""

import asyncio
from pathlib import Path
from typing import Final

from agentbox.core import clock
from agentbox.core.paths import Paths
from agentbox.mesh.client.instance import FILE as INSTANCE
from agentbox.mesh.host.session_store import SessionStore, end_session
from agentbox.restoring.stores import opened

ACCESS: Final = "secrets/access.db"
AGENTS: Final = "orchestrator/agents.db"
MESH_SESSIONS: Final = "mesh/sessions.db"
# agent-host makes both anew: by the mark it finds, and ends, the processes of its agents, and the
# box that the snapshot is of may run on the same host.
_FACTS: Final = ("mark", "init")


def disable_tokens(paths: Paths) -> int:
    """Disables every named token; returns how many."""
    if not (paths.state / ACCESS).is_file():
        return 0
    with opened(paths, ACCESS) as connection:
        connection.execute("UPDATE tokens SET disabled = 1 WHERE disabled = 0")
        return connection.changes()


def end_sessions(paths: Paths) -> None:
    """Ends the sessions of people: each may have been ended since."""
    if (paths.state / ACCESS).is_file():
        with opened(paths, ACCESS) as connection:
            connection.execute("DELETE FROM sessions")


def end_agents(paths: Paths) -> int:
    """Agents that ran get no process and no restart: agent-host finds each of them `lost` and
    records it. Suspended ones stay. Returns how many ran.
    """
    if not (paths.state / AGENTS).is_file():
        return 0
    with opened(paths, AGENTS) as connection:
        connection.executemany("DELETE FROM facts WHERE name = ?", [(name,) for name in _FACTS])
        connection.execute(
            "UPDATE agents SET row = json_set(row, '$.pid', NULL, '$.start_ticks', 0,"
            " '$.boot_id', '', '$.stop_requested', json('true'))"
            " WHERE over = 0 AND row ->> '$.state' <> 'suspended'"
        )
        return connection.changes()


def end_mesh_sessions(paths: Paths) -> int:
    """Ends the sessions of other boxes at this host; they join again. Returns how many."""
    if not (paths.state / MESH_SESSIONS).is_file():
        return 0
    return asyncio.run(_end_mesh_sessions(paths.slot("mesh")))


async def _end_mesh_sessions(directory: Path) -> int:
    store = SessionStore(directory)
    try:
        stored = await store.load()
        store.check_open()
        active = () if stored is None else stored.active
        now = clock.now()
        await store.save(*(end_session(session, "expired", now) for session in active))
        return len(active)
    finally:
        await store.close()


def forget_identity(paths: Paths) -> None:
    """The box of another name makes its own: mesh instance id and secret, admin token, keys and
    passwords of its programs.
    """
    (paths.slot("mesh") / INSTANCE).unlink(missing_ok=True)
    kept = Path(ACCESS).name
    for file in paths.state_secrets.glob("*"):
        if not file.name.startswith(kept):
            file.unlink()
