"""Live keys of a provider."""

import asyncio
from dataclasses import replace
from pathlib import Path

from agentbox_testkit.wait import wait_until
from support.api_box import api_plan
from support.model_gateway import VARIABLE, model_gateway
from support.model_server import ModelServer

from agentbox.box.supervision.applied_plan import store_applied
from agentbox.core.paths import Paths
from agentbox.gateway.llm.live_config import watch_config
from agentbox.plan.tables import ProviderPlan


async def test_an_applied_manifest_holds_for_the_next_call(tmp_path: Path) -> None:
    """Models and calls at once change; a plan that cannot be read changes nothing."""
    paths = Paths(tmp_path)
    paths.run.mkdir(parents=True)
    with ModelServer() as server:
        async with model_gateway(tmp_path / "state", server) as gateway:
            gateway.authorizer.add_agent("coder")
            following = asyncio.create_task(watch_config(gateway.app, paths))
            await asyncio.sleep(0)
            paths.applied_plan.write_text("{")
            provider = ProviderPlan(
                enabled=True, kind="openai", base_url=f"{server.url}/v1", env_var=VARIABLE, models=("large-*",),
                max_concurrent=9, timeout_seconds=30,
            )  # fmt: skip
            store_applied(paths, replace(api_plan(), providers={"openai": provider}))
            await wait_until(
                lambda: gateway.app.runtimes["openai"].queue.slots == 9, "the new bound holds"
            )
            assert (await gateway.chat("coder")).status_code == 403
            assert (await gateway.chat("coder", model="large-1")).status_code == 200
            paths.applied_plan.write_text("{")
            await asyncio.sleep(1.2)
            assert not following.done()
            assert gateway.app.runtimes["openai"].queue.slots == 9
            following.cancel()
