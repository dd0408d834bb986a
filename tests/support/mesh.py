"""Helpers for mesh tests besides `ApiBox`: plans of hosts and clients, and a box controlled by the
test.
"""

import base64
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from agentbox.adapters.runtime.adapter import SLOTS as SLOT_NAMES
from agentbox.client import BoxClient
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, SlotPlan
from support import tables
from support.api_box import SLOTS, ApiBox, api_plan

ENROLMENT = "an-enrolment-token-of-a-test"
TOKEN_ENV = "AGENTBOX_MESH_TOKEN"
EXTERNAL = {"beads": "external-http", "pods": "external-solid", "events": "external-http"}


def host_plan(
    *, public_base: str = "", slots: Mapping[str, SlotPlan] | None = None, **changes: Any
) -> Plan:
    """Return a host with local slots and no orchestrator, and `slots`; `changes` are keys of
    `[mesh]`.
    """
    rows = {**SLOTS, "orchestrator": SlotPlan(use="off", required=False), **(slots or {})}
    plan = api_plan(slots=rows, mesh=tables.mesh(**{"mode": "host", **changes}))
    return replace(plan, api=replace(plan.api, public_base=public_base))


def client_plan(
    host_url: str, *, slots: Mapping[str, SlotPlan] | None = None, **changes: Any
) -> Plan:
    """Return a client of that host that logs each step: beads from the session, the rest local, and
    `slots`; `changes` are keys of `[mesh]`.
    """
    beads = SlotPlan(
        use="external-http", required=False, options={"endpoint": "", "timeout_seconds": 5}
    )
    disabled = SlotPlan(use="off", required=False)
    mesh = tables.mesh(**{"mode": "client", "host_url": host_url, **changes})
    plan = api_plan(
        slots={**SLOTS, "orchestrator": disabled, "beads": beads, **(slots or {})}, mesh=mesh
    )
    return replace(plan, observability=replace(plan.observability, log_level="debug"))


def write_enrolment(prefix: Path, **extra_secrets: str) -> None:
    """Writes the enrolment token and `extra_secrets` to the box's secrets directory."""
    directory = Paths(prefix).mounted_secrets
    directory.mkdir(parents=True, exist_ok=True)
    for name, value in {TOKEN_ENV: ENROLMENT, **extra_secrets}.items():
        (directory / name).write_text(value)


def mesh_box(prefix: Path, plan: Plan, *, scale: float = 1) -> ApiBox:
    """Return a box of that plan with the enrolment token, not started; its agent-host, if
    any, is.
    """
    prefix.mkdir(parents=True, exist_ok=True)
    write_enrolment(prefix)
    agents = plan.slots["orchestrator"].use == "local-process"
    box = ApiBox(prefix, orchestrator=agents, plan=plan, scale=scale)
    if box.host is not None:
        box.host.start()
    return box


class ManualBox:
    """A box whose calls of a host the test makes."""

    def __init__(self, host: ApiBox, *, impls: Mapping[str, str] = EXTERNAL) -> None:
        self.instance_id, self.boot_id, self.secret = str(uuid4()), str(uuid4()), os.urandom(32)
        self.impls = dict(impls)
        self.contracts = dict.fromkeys(SLOT_NAMES, "1.0.0")
        self.image_hash = "sha256:" + "a" * 64
        self.token, self.session_id, self.heartbeat_count = "", "", 0
        self._host = host

    def register_body(self, **changes: Any) -> dict[str, Any]:
        """Return the body of a registration."""
        return {
            "protocol": 1,
            "instance_id": self.instance_id,
            "boot_id": self.boot_id,
            "instance_secret": base64.b64encode(self.secret).decode(),
            "image_hash": self.image_hash,
            "contracts": self.contracts,
            "impls": self.impls,
            **changes,
        }

    def register(self, **changes: Any) -> dict[str, Any]:
        """Registers, and stores the session. Raises ApiError."""
        with self._host.client(ENROLMENT) as client:
            session: dict[str, Any] = client.call(
                "mesh_register", body=self.register_body(**changes)
            )
        self.token, self.session_id, self.heartbeat_count = (
            session["token"],
            session["session_id"],
            0,
        )
        return session

    def client(self) -> BoxClient:
        """Return a client with the session's token."""
        return self._host.client(self.token)

    def heartbeat(self, **changes: Any) -> dict[str, Any]:
        """Sends a heartbeat. Raises ApiError."""
        self.heartbeat_count += 1
        with self.client() as client:
            reply: dict[str, Any] = client.call(
                "mesh_heartbeat",
                body={"session_id": self.session_id, "beat": self.heartbeat_count, **changes},
            )
        return reply

    def deregister(self) -> dict[str, Any]:
        """Deregisters. Raises ApiError."""
        with self.client() as client:
            reply: dict[str, Any] = client.call(
                "mesh_deregister", body={"session_id": self.session_id}
            )
        return reply
