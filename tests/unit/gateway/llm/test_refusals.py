"""Calls that never reach a provider, and the vendor's error format of the refusal."""

import asyncio
from pathlib import Path
from typing import Any

from agentbox_testkit.wait import wait_until
from support.fake_authorizer import right
from support.model_gateway import BUDGET, KEY, model_gateway
from support.model_server import ModelServer

from agentbox.gateway.llm.request import MAX_BODY
from agentbox.gateway.llm.request import MAX_PARTS as MOST

CHAT: dict[str, Any] = {"model": "small-1", "messages": [{"role": "user", "content": "Hi."}]}
RESPONSES: dict[str, Any] = {"model": "small-1", "input": [{"role": "user", "content": "Hi."}]}
MESSAGES: dict[str, Any] = {**CHAT, "max_tokens": 50}
CONTENTS: dict[str, Any] = {"contents": [{"parts": [{"text": "Hi."}]}]}
COUNT = "gemini/v1beta/models/small-1:countTokens"
GENERATE = "gemini/v1beta/models/small-1:generateContent"
FUNCTION = {
    "type": "object",
    "properties": {"file_id": {"type": "string"}, "server_url": {"type": "string"}},
}

PATHS = [
    ("POST", "openai/v1/files"), ("GET", "openai/v1/files"), ("POST", "openai/v1/batches"), ("GET", "openai/v1/responses/r"),
    ("DELETE", "openai/v1/models/small-1"), ("POST", "openai/v1/images/generations"), ("POST", "openai/v1/assistants"),
    ("GET", "openai/v1/organization/admin_api_keys"), ("POST", "openai/v1/containers"), ("POST", "openai/v1/chat/completions/x"),
    ("POST", "openai/v1/v1/responses"), ("POST", "anthropic/v1/messages/batches"), ("POST", "anthropic/v1/files"),
    ("GET", "anthropic/v1/organizations/me"), ("POST", "anthropic/v1/complete"), ("POST", "gemini/v1beta/cachedContents"),
    ("POST", "gemini/upload/v1beta/files"), ("POST", "gemini/v1beta/models/small-1:predict"),
    ("POST", "gemini/v1beta/models/small-1:batchGenerateContent"), ("DELETE", "gemini/v1beta/models/small-1"),
    ("PUT", "anthropic/v1/messages"),
]  # fmt: skip


async def test_only_listed_calls_pass(tmp_path: Path) -> None:
    """403 and a count for every other path and method."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            head = {"authorization": "Bearer token-coder"}
            for count, (method, path) in enumerate(PATHS, 1):
                response = await gateway.client.request(
                    method, f"{gateway.url}/llm/{path}", headers=head, json=CHAT
                )
                assert response.status_code == 403, path
                assert gateway.authorizer.refusal_counts["coder", "llm:path"] == count
            assert not server.requests


async def test_a_path_in_another_form_is_refused(tmp_path: Path) -> None:
    """Dots, doubled slashes and escapes never reach the provider."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            head = b"authorization: Bearer token-coder\r\ncontent-length: 2\r\nhost: x\r\n\r\n{}"
            for path in (
                b"v1/../v1/responses",
                b"v1//responses",
                b"v1/%2e%2e/responses",
                b"v1/responses/../files",
            ):
                response = await raw(
                    gateway.url, b"POST /llm/openai/" + path + b" HTTP/1.1\r\n" + head
                )
                assert response.split(b" ")[1] in (b"403", b"404"), path
            assert not server.requests


async def raw(url: str, request: bytes) -> bytes:
    """The first bytes of the answer to a request that no client library would send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(request)
    result = await reader.read(200)
    writer.close()
    return result


async def test_nothing_is_stored_at_the_provider(tmp_path: Path) -> None:
    """`store` is off, whatever the agent sends."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            await gateway.post("coder", "openai/v1/responses", {**RESPONSES, "store": True})
            await gateway.chat("coder", store=True)
            assert [request.body["store"] for request in server.requests] == [False, False]


async def test_an_answer_whose_usage_could_not_be_read_is_not_asked_for(tmp_path: Path) -> None:
    """A stream parameter that only some servers recognise, and responses of another form than JSON
    and events, are refused."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            for value in ("true", 1, "yes", {}):
                assert (await gateway.chat("coder", stream=value)).status_code == 400, value
            stream = GENERATE.replace("generate", "streamGenerate")
            for path in (
                f"{stream}?alt=ssefoo", f"{stream}?alt=json&alt=sse", f"{stream}?pageToken=alt=sse", f"{GENERATE}?alt=proto",
                f"{GENERATE}?alt=sse", f"{GENERATE}?alt=media",
            ):  # fmt: skip
                assert (await gateway.post("coder", path, CONTENTS)).status_code == 400, path
            assert not server.requests
            assert (await gateway.post("coder", f"{stream}?alt=sse", CONTENTS)).status_code == 200
            assert server.requests[-1].query == "alt=sse"


async def test_a_number_of_answers_is_weighed_before_the_call_waits(tmp_path: Path) -> None:
    """More than any budget allows is refused at once, and the gateway continues to serve."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("greedy")
            gateway.authorizer.add_agent("coder")
            async with asyncio.timeout(60):
                assert (await gateway.chat("greedy", n=10**30)).status_code == 429
                assert (await gateway.chat("coder")).status_code == 200
            assert gateway.authorizer.refusal_counts == {("greedy", "budget:tokens"): 1}


async def test_models_need_a_right_and_a_provider_that_is_open_for_them(tmp_path: Path) -> None:
    """Both are checked, and each refusal has its rule."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server, models=("small-*",)) as gateway:
            gateway.authorizer.add_agent("coder", rights=(right("llm", "call", "openai/small-1"),))
            assert (await gateway.chat("coder")).status_code == 200
            assert (await gateway.chat("coder", model="small-2")).status_code == 403
            assert (await gateway.chat("coder", model="large-1")).status_code == 403
            assert (
                await gateway.post("coder", "anthropic/v1/messages", MESSAGES)
            ).status_code == 403
            assert gateway.authorizer.refusal_counts == {
                ("coder", "llm call"): 2,
                ("coder", "llm:model"): 1,
            }
            assert len(server.requests) == 1


async def test_without_a_budget_there_is_no_model(tmp_path: Path) -> None:
    """No budget, no call."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder", budget=None)
            assert (await gateway.chat("coder")).status_code == 403
            assert gateway.authorizer.refusal_counts["coder", "llm:budget"] == 1


async def test_a_body_that_is_no_request_is_said_to_be_none(tmp_path: Path) -> None:
    """400, nothing is sent, nothing breaks."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            head = {"authorization": "Bearer token-coder"}
            for body in (
                b"",
                b"[]",
                b"{",
                b'"x"',
                b"[" * 100_000,
                b'{"model": 1}',
                b'{"model": "a b"}',
            ):
                response = await gateway.client.post(
                    f"{gateway.url}/llm/openai/v1/responses", content=body, headers=head
                )
                assert response.status_code == 400, body[:20]
                assert response.json()["error"]["type"] == "invalid_request_error"
            assert not server.requests


async def test_the_filter_masks_what_goes_out_and_counts_it(tmp_path: Path) -> None:
    """`privacy.policy.outbound`."""
    secret = "sk-" + "ab12" * 8
    with ModelServer() as server:
        async with model_gateway(tmp_path / "soft", server, privacy="soft") as gateway:
            gateway.authorizer.add_agent("coder")
            assert (await gateway.chat("coder", f"my key is {secret}")).status_code == 200
            assert secret not in str(server.requests[-1].body)
            assert gateway.app.gauges.masked == {("openai", "secret"): 1}
        async with model_gateway(tmp_path / "off", server) as gateway:
            gateway.authorizer.add_agent("coder")
            await gateway.chat("coder", f"my key is {secret}")
            assert secret in str(server.requests[-1].body)


async def test_odd_text_and_depth_break_nothing(tmp_path: Path) -> None:
    """Half a surrogate pair passes as it came; what is nested too deep is refused; `prompt` of completions is the text."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server, privacy="soft") as gateway:
            gateway.authorizer.add_agent("coder")
            head = {"authorization": "Bearer token-coder"}
            url = f"{gateway.url}/llm/openai/v1/chat/completions"
            half = b'{"model":"small-1","messages":[{"role":"user","content":"\\ud800"}]}'
            assert (await gateway.client.post(url, content=half, headers=head)).status_code == 200
            assert server.requests[-1].body["messages"][0]["content"] == "\ud800"
            for depth in (400, 900, 5000):
                deep = b'{"model":"small-1","messages":[],"x":' + b"[" * depth + b"]" * depth + b"}"
                response = await gateway.client.post(url, content=deep, headers=head)
                assert response.status_code in (200, 400), depth
            assert response.status_code == 400
            await gateway.post(
                "coder", "openai/v1/completions", {"model": "small-1", "prompt": "Once"}
            )
            assert server.requests[-1].body["prompt"] == "Once"


async def test_many_large_requests_cost_the_agent_that_sends_them(tmp_path: Path) -> None:
    """A body that is too large, one of too many parts, and many at once are refused; another agent
    is served meanwhile."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("greedy")
            gateway.authorizer.add_agent("coder")
            head = {"authorization": "Bearer token-greedy"}
            url = f"{gateway.url}/llm/openai/v1/chat/completions"
            for body in (
                b" " * (MAX_BODY + 1),
                b'{"model":"small-1","x":[' + b"0," * MOST + b"0]}",
            ):
                assert (
                    await gateway.client.post(url, content=body, headers=head)
                ).status_code == 413
            lines = [
                await asyncio.open_connection("127.0.0.1", int(gateway.url.rpartition(":")[2]))
                for _ in range(3)
            ]
            for _, writer in lines:
                output = "POST /llm/openai/v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-greedy\r\n"
                writer.write(f"{output}content-length: {MAX_BODY - 1}\r\n\r\n{{".encode())
            answers = [asyncio.ensure_future(reader.readline()) for reader, _ in lines]
            done, _ = await asyncio.wait(answers, timeout=5, return_when=asyncio.FIRST_COMPLETED)
            assert [one.result().split()[1] for one in done] == [b"503"]
            assert (await gateway.chat("coder")).status_code == 200
            for _, writer in lines:
                writer.close()
            await wait_until(
                lambda: not gateway.app.body_memory.reserved, "nothing is held any more"
            )
            await asyncio.gather(*answers)


async def test_a_key_that_is_not_set_is_named(tmp_path: Path) -> None:
    """The name of the secret, for the operator."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server, env_var="OTHER_KEY") as gateway:
            gateway.authorizer.add_agent("coder", budget=BUDGET)
            response = await gateway.chat("coder")
            assert response.status_code == 503
            assert "OTHER_KEY" in response.text
            assert KEY not in response.text
