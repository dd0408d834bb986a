"""The steps that stop the dockerd of agentbox and undo what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from agentbox.host.engines.docker import daemon
from agentbox.host.uninstall import daemon_traces
from agentbox.host.uninstall.inventory import Inventory, Item
from agentbox.host.uninstall.removal import Kept, Removal


def daemon_removals(inventory: Inventory, *, others: Sequence[str]) -> Iterator[Removal | Kept]:
    """Nothing if agentbox started no dockerd. One that has something of `others` stays."""
    state_root = inventory.directory
    if str(state_root) not in inventory.names("daemon"):
        return
    pids = daemon.started_by(state_root)
    if others:
        if pids:
            yield Kept(kind="daemon", name="dockerd", reason=f"it has {_listed(others)}")
        return
    yield Removal(
        kind="daemon",
        name=f"dockerd, pid {', '.join(map(str, pids))}" if pids else "dockerd",
        remove=partial(daemon_traces.stop_daemon, state_root),
        items=(Item("daemon", str(state_root)),),
    )
    for policy in inventory.names("packet-filter"):
        yield Removal(
            kind="packet filter",
            name=f"rules of docker, {policy}",
            remove=partial(daemon_traces.restore_packet_filter, policy),
            items=(Item("packet-filter", policy),),
        )
    for name in inventory.names("interface"):
        yield Removal(
            kind="interface",
            name=name,
            remove=partial(daemon_traces.remove_interface, name),
            items=(Item("interface", name),),
        )
    for value in inventory.names("forwarding"):
        yield Removal(
            kind="kernel",
            name=f"net.ipv4.ip_forward = {value}",
            remove=partial(daemon_traces.restore_forwarding, value),
            items=(Item("forwarding", value),),
        )


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
