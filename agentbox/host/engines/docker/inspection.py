"""What `docker inspect` says of a container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal


def published_ports(container: Mapping[str, Any]) -> set[int]:
    """Return the host ports of a running container."""
    if not container["State"]["Running"]:
        return set()
    rows = [
        row
        for bindings in (container["NetworkSettings"]["Ports"] or {}).values()
        for row in bindings or ()
    ]
    return {int(row["HostPort"]) for row in rows}


def state_name(state: Mapping[str, bool]) -> Literal["running", "restarting", "exited"]:
    if state["Restarting"]:
        return "restarting"
    return "running" if state["Running"] else "exited"
