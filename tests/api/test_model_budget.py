"""An agent's use of its model budget, wherever it is shown: API, command, agent API and metrics of
a complete box."""

from pathlib import Path

import httpx
from commandline import agentbox
from helpers import until
from support.model_server import ModelServer
from support.story_box import StoryBox

from agentbox.client import AgentApiClient

MANIFEST = """
[providers.models]
enabled = true
kind = "openai"
base_url = "{url}/v1"
env_var = "MODEL_KEY"
[agents.coder]
command = ["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']
provider = "models"
workspace = "direct"
llm.max_tokens = 50000
llm.max_calls = 10
llm.window_seconds = 3600
"""
ASK = {"model": "small-1", "messages": [{"role": "user", "content": "Hi."}]}


def test_every_place_says_the_same_of_a_budget(tmp_path: Path) -> None:
    """All of it before the first call; then what that call took, in the API, the command, `hello` and the metrics; and the
    same after the gateway was killed."""
    with (
        ModelServer() as server,
        StoryBox(tmp_path, server.url, MANIFEST, {"MODEL_KEY": "k" * 20}) as box,
    ):
        agent_id, gateway = (
            box.client.agents.spawn({"name": "coder", "agent": "coder"}).agent_id,
            f"http://127.0.0.1:{box.port}",
        )
        token = until(lambda: _said(box, agent_id), 30)
        fresh = box.client.agents.get(agent_id).budget
        assert fresh["tokens"] == {"cap": 50000, "used": 0, "reserved": 0, "left": 50000}
        assert (fresh["calls"], fresh["resets_at"]) == ({"cap": 10, "used": 0, "left": 10}, None)
        asked = {"Authorization": f"Bearer {token}"}
        done = httpx.post(
            f"{gateway}/llm/models/chat/completions",
            json=ASK,
            headers=asked,
            trust_env=False,
            timeout=30,
        )
        took = done.json()["usage"]["total_tokens"]
        settled = {"cap": 50000, "used": took, "reserved": 0, "left": 50000 - took}
        used = until(
            lambda: (now := box.client.agents.get(agent_id).budget)["tokens"] == settled and now, 30
        )
        assert (used["calls"], used["window_seconds"]) == ({"cap": 10, "used": 1, "left": 9}, 3600)
        with AgentApiClient(gateway, token) as agent_api:
            assert agent_api.hello()["budgets"]["use"] == used
        shown = agentbox(box.api, "agent", "show", agent_id).stdout.decode()
        words = f"tokens {took} of 50000, {50000 - took} left; calls 1 of 10, 9 left; window ends {used['resets_at']}"
        assert words in shown
        row = f'agentbox_model_budget_tokens{{agent="coder",state="left"}} {50000 - took}.0'
        assert row in httpx.get(f"{box.api.metrics_url}/metrics", trust_env=False).text
        box.gateway.kill()
        box.gateway.start()
        with AgentApiClient(gateway, token) as agent_api:
            assert until(lambda: _hello(agent_api), 30) == used
        assert box.client.agents.get(agent_id).budget == used
        (listed,) = box.client.agents.list(name="coder").items
        assert listed.budget == {}


def _said(box: StoryBox, agent_id: str) -> str:
    return (
        b"".join(
            one.data
            for one in box.client.agents.stream(agent_id, follow=False)
            if one.kind == "stdout"
        )
        .decode()
        .strip()
    )


def _hello(agent_api: AgentApiClient) -> object:
    """None while the gateway does not know the token again."""
    from agentbox.client import AgentApiDenied

    try:
        return agent_api.hello()["budgets"]["use"]
    except AgentApiDenied:
        return None
