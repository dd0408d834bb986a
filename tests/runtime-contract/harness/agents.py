"""Agents of a box under test, through its API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agentbox.client import BoxClient
from harness.box import Box
from harness.outcomes import API_PORT
from harness.waiting import wait_for

_PATHS = """
import json, sys
from agentbox.core.paths import Paths
paths = Paths.for_this_process()
found = {"prefix": paths.prefix, "run": paths.run, "state": paths.state, "sentinel": paths.sentinel, "key": paths.api_key,
    "host_token": paths.token("agent-host"), "host_socket": paths.agent_host_socket, "supervisor": paths.supervisor_socket,
    "journal": paths.slot("events"), "agents": paths.slot("orchestrator"), "workspace": paths.workspace}
print(json.dumps({"python": sys.executable, **{name: str(path) for name, path in found.items()}}))
"""


def client_of(box: Box) -> BoxClient:
    """As the admin. Close it after use."""
    return BoxClient(f"http://{box.address}:{API_PORT}", token=box.token(), timeout=60)


def places(box: Box) -> dict[str, str]:
    """Paths of the box as its programs see them, and the interpreter."""
    found: dict[str, str] = json.loads(box.python(_PATHS).out)
    return found


def wait_served(box: Box) -> None:
    """Until every slot works; a box whose sandbox fails never becomes more ready than that."""

    def served() -> bool:
        answer = box.try_get("/health")
        return answer is not None and all(
            row["state"] in ("ok", "off") for row in answer.json["adapters"].values()
        )

    wait_for(served, 30, lambda: f"slots; log {box.log_lines()[-5:]}")


def python_spec(
    box: Box, code: str, *words: str, name: str = "test", **more: Any
) -> dict[str, Any]:
    """An agent of the default profile that runs code in the box's interpreter."""
    argv: Sequence[str] = (places(box)["python"], "-I", "-c", code, *words)
    return {"name": name, "argv": list(argv), "profile": "sandboxed", **more}
