"""What is counted reaches `/metrics`."""

import asyncio
from pathlib import Path

from agentbox_testkit.wait import wait_until
from prometheus_client import CollectorRegistry, generate_latest
from support.model_gateway import BUDGET, model_gateway
from support.model_server import ModelServer

from agentbox.api.metrics.model_metrics import ModelMetrics
from agentbox.gateway.llm.gateway_counters import write_changes


async def test_calls_tokens_budgets_and_queues_are_shown(tmp_path: Path) -> None:
    """As a scraper sees them; before the first call, and without a gateway, the families exist and
    are empty."""
    told = tmp_path / "models.json"
    registry = CollectorRegistry()
    registry.register(ModelMetrics(told))
    assert "agentbox_model_calls_total" in generate_latest(registry).decode()
    with ModelServer() as server:
        async with model_gateway(tmp_path / "state", server) as gateway:
            gateway.authorizer.add_agent("coder")
            telling = asyncio.create_task(write_changes(gateway.app.state, told))
            response = await gateway.chat("coder")
            used = response.json()["usage"]
            row = 'agentbox_model_calls_total{agent="coder",outcome="ok",provider="openai"} 1.0'
            await wait_until(lambda: row in generate_latest(registry).decode(), "the call is shown")
            shown = generate_latest(registry).decode()
            made = f'agentbox_model_tokens_total{{agent="coder",direction="output",provider="openai"}} {used["completion_tokens"]}.0'
            assert made in shown
            left = BUDGET.max_tokens - used["total_tokens"]
            assert (
                f'agentbox_model_budget_tokens{{agent="coder",state="left"}} {float(left)}' in shown
            )
            assert 'agentbox_model_queue_depth{provider="openai"} 0.0' in shown
            assert oct(told.stat().st_mode)[-3:] == "600"
            telling.cancel()
