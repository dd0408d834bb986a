"""Agents that start with the box, on a real agent-host."""

import asyncio
from dataclasses import replace
from pathlib import Path

from support.agent_host import AgentHostBox
from support.api_box import api_plan
from support.plans import plan_of

from agentbox.api.app import build
from agentbox.api.background.autostart import autostart, autostart_names
from agentbox.plan.model import SlotPlan

MANIFEST = """
[agents.clerk]
command = ["sleep", "1000"]
autostart = true
[agents.idle]
command = ["sleep", "1000"]
[agents.shut]
command = ["sleep", "1000"]
autostart = true
enabled = false
"""


async def test_once_the_box_is_ready(prefix: Path) -> None:
    """Not before the box is ready; only enabled agents with `autostart`; and not again when the API
    restarts in this boot."""
    host = AgentHostBox(prefix, manifest=MANIFEST)
    host.paths.state_secrets.mkdir(parents=True)
    host.paths.api_key.write_text("k" * 64)
    host.start()
    try:
        for _ in range(2):
            api = build(api_plan(agents=plan_of(MANIFEST).agents), host.paths, None)
            assert autostart_names(api.plans.current) == ("clerk",)
            await api.slots.start()
            starting = asyncio.create_task(
                autostart(api.plans, "", api.slots.orchestrator, api.ready_once)
            )
            done, _ = await asyncio.wait({starting}, timeout=0.2)
            assert not done
            api.ready_once.set()
            async with asyncio.timeout(10):
                await starting
            found = (await api.slots.orchestrator.list()).items
            assert [(one.spec.name, one.state) for one in found] == [("clerk", "running")]
            await api.slots.stop()
        off = replace(
            api.plans.current,
            slots={**api.plans.current.slots, "orchestrator": SlotPlan(use="off", required=False)},
        )
        assert autostart_names(off) == ()
    finally:
        host.stop()
