"""What is forwarded to a provider, with which key, and what is returned."""

from pathlib import Path

import pytest
from support.model_gateway import KEY, ModelGatewayFixture, model_gateway
from support.model_server import ModelServer, ServerFault, play_script
from support.model_turns import ModelTurn

TEXT = "The answer is forty-two, as everybody knows."
CALLS = {
    "openai/v1/chat/completions": {
        "model": "small-1",
        "messages": [{"role": "user", "content": "Hi."}],
    },
    "openai/v1/responses": {"model": "small-1", "input": [{"role": "user", "content": "Hi."}]},
    "anthropic/v1/messages": {
        "model": "small-1",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi."}],
    },
}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}


def said() -> ModelServer:
    return ModelServer(reply=play_script([ModelTurn(text=TEXT, tokens=20)]), key=KEY)


def used(gateway: ModelGatewayFixture) -> int:
    return gateway.app.ledger.accounts["coder"].tokens


@pytest.mark.parametrize("path", CALLS)
async def test_a_call_has_the_box_s_key_and_is_charged_what_the_provider_says(
    tmp_path: Path, path: str
) -> None:
    """The agent's token never leaves the box."""
    with said() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            response = await gateway.post("coder", path, CALLS[path])
            assert response.status_code == 200, response.text
            assert TEXT in response.text
            assert server.requests[-1].key == KEY
            assert "token-coder" not in str(server.requests[-1])
            usage = response.json()["usage"]
            told = usage.get("total_tokens") or usage["input_tokens"] + usage["output_tokens"]
            assert used(gateway) == told
            assert not gateway.app.gauges.estimated


@pytest.mark.parametrize("path", CALLS)
async def test_a_stream_is_the_provider_s_to_the_byte(tmp_path: Path, path: str) -> None:
    """Compared with the same body sent directly, without the chunk of usage that only the gateway
    requested."""
    with said() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            body = {**CALLS[path], "stream": True}
            through = await gateway.post("coder", path, body)
            assert through.headers["content-type"].startswith("text/event-stream")
            sent = dict(server.requests[-1].body)
            rest = path.partition("/")[2]
            head = {"authorization": f"Bearer {KEY}"}
            direct = await gateway.client.post(f"{server.url}/{rest}", json=sent, headers=head)
            extra = [event for event in direct.text.split("\n\n") if '"choices": []' in event]
            assert len(extra) == ("chat" in path)  # requested by the gateway, not by the agent
            expected = direct.text.replace(extra[0] + "\n\n", "") if extra else direct.text
            assert through.text == expected
            assert 0 < used(gateway) < 200
            assert not gateway.app.gauges.estimated


async def test_usage_that_the_agent_asked_for_itself_reaches_it(tmp_path: Path) -> None:
    """Nothing that was requested is removed."""
    with said() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            response = await gateway.chat(
                "coder", stream=True, stream_options={"include_usage": True}
            )
            assert '"choices": []' in response.text


async def test_gemini_whole_and_streamed(tmp_path: Path) -> None:
    """The token is sent as `?key=` or header, and is not in the provider's query."""
    with said() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            base = f"{gateway.url}/llm/gemini/v1beta/models/small-1"
            whole = await gateway.client.post(
                f"{base}:generateContent?key=token-coder", json=GEMINI
            )
            assert TEXT in whole.text
            assert server.requests[-1].key == KEY
            assert "key" not in server.requests[-1].query
            head = {"x-goog-api-key": "token-coder"}
            stream = await gateway.client.post(
                f"{base}:streamGenerateContent?alt=sse", json=GEMINI, headers=head
            )
            assert stream.text.count("data: ") > 2
            assert server.requests[-1].body["generationConfig"]["maxOutputTokens"] > 0
            assert (
                used(gateway) == 2 * whole.json()["usageMetadata"]["totalTokenCount"]
                or used(gateway) > 40
            )
            counted = await gateway.client.post(f"{base}:countTokens", json=GEMINI, headers=head)
            assert counted.json()["totalTokens"] > 0


async def test_a_list_names_only_models_that_the_agent_may_call(tmp_path: Path) -> None:
    """By the provider's `models` and the agent's rights, for every kind."""
    with said() as server:
        async with model_gateway(tmp_path, server, models=("small-*",)) as gateway:
            gateway.authorizer.add_agent("coder")
            head = {"x-api-key": "token-coder"}
            for path in ("openai/v1/models", "anthropic/v1/models"):
                response = await gateway.client.get(f"{gateway.url}/llm/{path}", headers=head)
                assert [row["id"] for row in response.json()["data"]] == ["small-1", "small-2"]
            response = await gateway.client.get(
                f"{gateway.url}/llm/gemini/v1beta/models", headers=head
            )
            assert [row["name"] for row in response.json()["models"]] == [
                "models/small-1",
                "models/small-2",
            ]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_that_sends_the_key_back_is_not_heard(
    tmp_path: Path, stream: bool
) -> None:
    """In a body, a header and an event; it is counted."""
    with said() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            for path in CALLS:
                server.faults.append(ServerFault(kind="echo"))
                response = await gateway.post("coder", path, {**CALLS[path], "stream": stream})
                assert response.status_code == 200
                told = response.text + str(response.headers)
                assert KEY not in told
                assert "[REDACTED]" in response.text
            assert sum(gateway.app.gauges.echoes.values()) >= 3


async def test_a_refused_key_is_said_without_the_provider_s_words(tmp_path: Path) -> None:
    """A vendor's 401 quotes a part of the key."""
    with ModelServer(key="another") as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            response = await gateway.chat("coder")
            assert response.status_code == 502
            assert KEY not in response.text
            assert "rejected the key" in response.json()["error"]["message"]
            assert used(gateway) == 0


async def test_no_token_no_model(tmp_path: Path) -> None:
    """401 in the provider's shape, and nothing is sent."""
    with said() as server:
        async with model_gateway(tmp_path, server) as gateway:
            response = await gateway.chat("nobody")
            assert response.status_code == 401
            assert response.json()["error"]["type"] == "authentication_error"
            response = await gateway.post(
                "nobody", "anthropic/v1/messages", CALLS["anthropic/v1/messages"]
            )
            assert response.json() == {
                "type": "error",
                "error": {
                    "type": "authentication_error",
                    "message": "the token is unknown, or its agent has ended",
                },
            }
            assert not server.requests
