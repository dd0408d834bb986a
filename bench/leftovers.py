"""What a box leaves behind, and what it weighs: for benches that start a real one."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import apsw

from agentbox.box.supervision.rpc import SupervisorUnavailable
from agentbox.core.paths import PREFIX_VARIABLE, Paths
from agentbox.sandbox.launcher import tree

_PROGRAMS = ("management-api", "gateway", "agent-host")
_OF_THE_BOX = frozenset({"screenshots"})  # a folder that the box itself makes
_KIB = 1024


def pss(box: Any) -> int:
    """Proportional bytes of the control plane: the three programs, the launcher and its walker. 0 while one is away."""
    try:
        states = box.box.supervisor().states()
    except SupervisorUnavailable:
        return 0
    pids = {states[name].pid for name in _PROGRAMS}
    if not all(pids):
        return 0
    launchers, walkers, _ = _kept_by(states["agent-host"].pid)
    return sum(_pss(pid) for pid in pids | launchers | walkers)


def pss_of_reapers(box: Any) -> int:
    """Proportional bytes of all reapers."""
    return sum(_pss(pid) for pid in _kept_by(box.pid("agent-host"))[2])


def _kept_by(host: int) -> tuple[set[int], set[int], set[int]]:
    """Launcher, walker and reapers of an agent-host."""
    table = tree.scan()
    launchers = {row.pid for row in table.values() if row.parent == host}
    children = {row.pid for row in table.values() if row.parent in launchers}
    reapers = {row.parent for row in table.values()} & children
    return launchers, children - reapers, reapers


def _pss(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return next(
        (int(line.split()[1]) * _KIB for line in text.splitlines() if line.startswith("Pss:")), 0
    )


def temp_files(box: Any) -> frozenset[str]:
    """Names in the box's own /tmp."""
    return frozenset(one.name for one in _below(box.box.paths.prefix / "tmp")) - _OF_THE_BOX


def left_behind(box: Any, before: frozenset[str], *, stopped: bool) -> list[str]:
    """A sentence for each thing that should be gone: of agents while the box runs, of the box once it has stopped. `before`:
    `temp_files` of the box at its start."""
    paths: Paths = box.box.paths
    said = [f"a branch is left: {one.name}" for one in _below(paths.branches)]
    said += [f"a temp file is left: {name}" for name in sorted(temp_files(box) - before)]
    said += [f"a token of agent {one} is left" for one in _tokens(paths)]
    if not stopped:
        agents = box.client.agents.list(limit=500).items
        return said + [f"agent {one.agent_id} still is {one.state}" for one in agents if one.state in ("running", "backoff")]  # fmt: skip
    said += [f"process {pid} is left: {line}" for pid, line in _processes(paths)]
    ports = (box.plan.api.port, box.plan.observability.metrics_port)
    return said + [f"port {port} still answers" for port in ports if _answers(port)]


def _below(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def _tokens(paths: Paths) -> list[str]:
    """Agents whose row still has the hash of a token."""
    database = paths.slot("orchestrator") / "agents.db"
    if not database.exists():
        return []
    rows = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY).execute(
        "SELECT agent_id, row FROM agents"
    )
    return [
        agent_id for agent_id, row in rows if '"token_sha256": "' in row and _held(json.loads(row))
    ]


def _held(row: dict[str, Any]) -> bool:
    return bool(row.get("holding", {}).get("token_sha256"))


def _processes(paths: Paths) -> list[tuple[int, str]]:
    """Those that were started for this box."""
    wanted = f"{PREFIX_VARIABLE}={paths.prefix}".encode()
    found = []
    for row in tree.scan().values():
        try:
            environment = Path(f"/proc/{row.pid}/environ").read_bytes()
            line = (
                Path(f"/proc/{row.pid}/cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
            )
        except OSError:
            continue
        if wanted in environment.split(b"\0"):
            found.append((row.pid, line))
    return found


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
