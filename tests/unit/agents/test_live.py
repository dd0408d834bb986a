"""Agents, policies and egress of a manifest that was applied while the box runs."""

from pathlib import Path

import pytest
from support.agent_host import AgentHostBox, plan_of
from support.host_agents import (
    PRINT_TOKEN,
    agent_authorization,
    follow_authorizations,
    open_orchestrator,
    spawn,
)

from agentbox.box.supervision.applied_plan import store_applied
from agentbox.core.slot_errors import SpawnError, ValidationError
from agentbox.gateway.authorizer import AccessDenied

BEFORE = """
[egress]
allow = ["example.com"]
[policies.web]
base = "standard"
"""
AFTER = f"""
[egress]
allow = ["new.example.com"]
[agents.late]
command = ["sh", "-c", '{PRINT_TOKEN}']
profile = "web"
[policies.web]
base = "standard"
[policies.other]
"""


async def test_what_is_applied_holds_for_who_starts_then(tmp_path: Path) -> None:
    """Running agents keep their limits; new agents have the new rights; a damaged file changes
    nothing."""
    box = AgentHostBox(tmp_path, manifest=BEFORE)
    box.start()
    try:
        async with open_orchestrator(box) as adapter, follow_authorizations(box) as authority:
            old = await agent_authorization(
                adapter,
                authority,
                await spawn(adapter, "x", argv=("sh", "-c", PRINT_TOKEN), profile="web"),
            )
            with pytest.raises(ValidationError):
                await spawn(adapter, "late")
            store_applied(box.paths, plan_of({}, {}, AFTER))
            new = await agent_authorization(adapter, authority, await spawn(adapter, "late"))
            for who, allowed, refused in (
                (old, "example.com:443", "new.example.com:443"), (new, "new.example.com:443", "example.com:443"),
            ):  # fmt: skip
                await authority.check(who, "net", "connect", allowed)
                with pytest.raises(AccessDenied):
                    await authority.check(who, "net", "connect", refused)
            box.paths.applied_plan.write_text("{")
            await spawn(adapter, "x", argv=("true",), profile="other")
            with pytest.raises(SpawnError):
                await spawn(adapter, "x", argv=("true",), profile="third")
    finally:
        box.stop()
