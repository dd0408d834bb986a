"""Agents, policies and egress of a manifest that was applied while the box runs."""

from pathlib import Path

import pytest

from agentbox.box.supervision.applied import keep
from agentbox.core.slot_errors import SpawnError, ValidationError
from agentbox.gateway.authorizer import Refused
from agentbox.testing.agent_host import AgentHostBox, plan_of
from agentbox.testing.granted import SAYS_TOKEN, followed, opened, spawn, standing_of

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
command = ["sh", "-c", '{SAYS_TOKEN}']
profile = "web"
[policies.web]
base = "standard"
[policies.other]
"""


async def test_what_is_applied_holds_for_who_starts_then(tmp_path: Path) -> None:
    """Who runs keeps what it has; who starts has the new rights; a damaged file changes nothing."""
    box = AgentHostBox(tmp_path, manifest=BEFORE)
    box.start()
    try:
        async with opened(box) as adapter, followed(box) as authority:
            old = await standing_of(
                adapter, authority, await spawn(adapter, "x", argv=("sh", "-c", SAYS_TOKEN), profile="web")
            )
            with pytest.raises(ValidationError):
                await spawn(adapter, "late")
            keep(box.paths, plan_of({}, {}, AFTER))
            new = await standing_of(adapter, authority, await spawn(adapter, "late"))
            for who, allowed, refused in (
                (old, "example.com:443", "new.example.com:443"), (new, "new.example.com:443", "example.com:443"),
            ):  # fmt: skip
                await authority.check(who, "net", "connect", allowed)
                with pytest.raises(Refused):
                    await authority.check(who, "net", "connect", refused)
            box.paths.applied_plan.write_text("{")
            await spawn(adapter, "x", argv=("true",), profile="other")
            with pytest.raises(SpawnError):
                await spawn(adapter, "x", argv=("true",), profile="third")
    finally:
        box.stop()
