"""What never reaches a provider, and in whose words that is said."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentbox.gateway.llm.request import LARGEST
from agentbox.gateway.llm.request import PARTS as MOST
from agentbox.testing.model_server import ModelServer
from agentbox.testing.models import BUDGET, KEY, room
from agentbox.testing.told_authority import right
from agentbox.testing.until import until

CHAT: dict[str, Any] = {"model": "small-1", "messages": [{"role": "user", "content": "Hi."}]}
RESPONSES: dict[str, Any] = {"model": "small-1", "input": [{"role": "user", "content": "Hi."}]}
MESSAGES: dict[str, Any] = {**CHAT, "max_tokens": 50}
CONTENTS: dict[str, Any] = {"contents": [{"parts": [{"text": "Hi."}]}]}
GENERATE = "gemini/v1beta/models/small-1:generateContent"
FUNCTION = {"type": "object", "properties": {"file_id": {"type": "string"}, "server_url": {"type": "string"}}}

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

PARTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("openai/v1/responses", RESPONSES, {"tools": [{"type": "web_search"}]}),
    ("openai/v1/responses", RESPONSES, {"tools": [{"type": "mcp", "server_url": "https://x.example"}]}),
    ("openai/v1/responses", RESPONSES, {"tools": [{"type": "namespace", "tools": [{"type": "file_search"}]}]}),
    ("openai/v1/responses", RESPONSES, {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}),
    ("openai/v1/responses", RESPONSES, {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}),
    ("openai/v1/responses", RESPONSES, {"tools": [{"type": "image_generation"}]}),
    ("openai/v1/responses", RESPONSES, {"background": True}),
    ("openai/v1/responses", RESPONSES, {"previous_response_id": "resp_0"}),
    ("openai/v1/responses", RESPONSES, {"conversation": "conv_0"}),
    ("openai/v1/responses", RESPONSES, {"prompt": {"id": "pmpt_0"}}),
    ("openai/v1/responses", RESPONSES, {"input": [{"type": "item_reference", "id": "x"}]}),
    ("openai/v1/responses", RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}),
    ("openai/v1/chat/completions", CHAT, {"web_search_options": {"search_context_size": "low"}}),
    ("openai/v1/chat/completions", CHAT, {"messages": [{"role": "user", "content": [{"file": {"file_id": "f"}}]}]}),
    ("anthropic/v1/messages", MESSAGES, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
    ("anthropic/v1/messages", MESSAGES, {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}),
    ("anthropic/v1/messages", MESSAGES, {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}),
    ("anthropic/v1/messages", MESSAGES, {"mcp_servers": [{"type": "url", "url": "https://x.example", "name": "x"}]}),
    ("anthropic/v1/messages", MESSAGES, {"container": "container_1"}),
    ("anthropic/v1/messages", MESSAGES,
     {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]}]}),
    ("anthropic/v1/messages", MESSAGES, {"messages": [{"role": "user", "content": [{"type": "container_upload"}]}]}),
    (GENERATE, CONTENTS, {"tools": [{"googleSearch": {}}]}),
    (GENERATE, CONTENTS, {"tools": [{"google_search": {}}]}),
    (GENERATE, CONTENTS, {"tools": [{"codeExecution": {}}]}),
    (GENERATE, CONTENTS, {"tools": [{"urlContext": {}}]}),
    (GENERATE, CONTENTS, {"cachedContent": "cachedContents/1"}),
    (GENERATE, CONTENTS, {"systemInstruction": {}, "system_instruction": {"parts": [{"fileData": {"fileUri": "gs://x"}}]}}),
    (GENERATE, CONTENTS, {"contents": [{"parts": [{"file_data": {"file_uri": "gs://bucket/x"}}]}]}),
]  # fmt: skip

FETCHED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("openai/v1/chat/completions", CHAT,
     {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://img.example.org/a.png"}}]}]}),
    ("openai/v1/responses", RESPONSES,
     {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://img.example.org/a.png"}]}]}),
    ("openai/v1/responses", RESPONSES,
     {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "https://img.example.org/a.pdf"}]}]}),
    ("anthropic/v1/messages", MESSAGES,
     {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://img.example.org/a"}}]}]}),
    (GENERATE, CONTENTS, {"contents": [{"parts": [{"fileData": {"fileUri": "https://img.example.org/a.pdf"}}]}]}),
]  # fmt: skip


async def test_only_listed_calls_pass(tmp_path: Path) -> None:
    """403 and a count for every other path and method."""
    with ModelServer() as server:
        async with room(tmp_path, server) as here:
            here.standings.enter("coder")
            head = {"authorization": "Bearer token-coder"}
            for count, (method, path) in enumerate(PATHS, 1):
                answer = await here.client.request(method, f"{here.url}/llm/{path}", headers=head, json=CHAT)
                assert answer.status_code == 403, path
                assert here.standings.counted["coder", "llm:path"] == count
            assert not server.requests


async def test_a_path_in_another_form_is_refused(tmp_path: Path) -> None:
    """Dots, doubled slashes and escapes never reach the provider."""
    with ModelServer() as server:
        async with room(tmp_path, server) as here:
            here.standings.enter("coder")
            head = b"authorization: Bearer token-coder\r\ncontent-length: 2\r\nhost: x\r\n\r\n{}"
            for path in (b"v1/../v1/responses", b"v1//responses", b"v1/%2e%2e/responses", b"v1/responses/../files"):
                answer = await raw(here.url, b"POST /llm/openai/" + path + b" HTTP/1.1\r\n" + head)
                assert answer.split(b" ")[1] in (b"403", b"404"), path
            assert not server.requests


async def raw(url: str, request: bytes) -> bytes:
    """The first bytes of the answer to a request that no client library would send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(request)
    found = await reader.read(200)
    writer.close()
    return found


async def test_parts_that_work_outside_of_the_box_are_refused_by_name(tmp_path: Path) -> None:
    """Hosted tools, remote servers, background jobs, stored objects, of each kind and spelling."""
    with ModelServer() as server:
        async with room(tmp_path, server) as here:
            here.standings.enter("coder")
            for count, (path, body, part) in enumerate(PARTS, 1):
                answer = await here.post("coder", path, {**body, **part})
                assert answer.status_code == 403, part
                assert here.standings.counted["coder", "llm:part"] == count
            assert not server.requests


async def test_tools_that_the_agent_carries_out_itself_pass(tmp_path: Path) -> None:
    """Names within a tool's schema or data are only names."""
    with ModelServer() as server:
        async with room(tmp_path, server) as here:
            here.standings.enter("coder")
            function = {"type": "function", "name": "look", "parameters": FUNCTION}
            own = [function, {"type": "custom", "name": "patch"}, {"type": "local_shell"}]
            given = {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"file_id": "1"}'}
            asked = {**RESPONSES, "tools": own, "input": [*RESPONSES["input"], given]}
            assert (await here.post("coder", "openai/v1/responses", asked)).status_code == 200
            tools = [{"name": "look", "input_schema": FUNCTION}, {"type": "bash_20250124", "name": "bash"}]
            used = {"type": "tool_use", "id": "t", "name": "look", "input": {"file_id": "1", "type": "url", "url": "x"}}
            messages = [*MESSAGES["messages"], {"role": "assistant", "content": [used]}]
            assert (
                await here.post("coder", "anthropic/v1/messages", {**MESSAGES, "tools": tools, "messages": messages})
            ).is_success
            declared = {"tools": [{"functionDeclarations": [{"name": "look"}]}]}
            assert (await here.post("coder", GENERATE, {**CONTENTS, **declared})).status_code == 200


async def test_nothing_is_stored_at_the_provider(tmp_path: Path) -> None:
    """`store` is off, whatever the agent says."""
    with ModelServer() as server:
        async with room(tmp_path, server) as here:
            here.standings.enter("coder")
            await here.post("coder", "openai/v1/responses", {**RESPONSES, "store": True})
            await here.chat("coder", store=True)
            assert [request.body["store"] for request in server.requests] == [False, False]


async def test_what_the_provider_would_fetch_the_agent_must_be_allowed_to_reach(tmp_path: Path) -> None:
    """A URL in each place that takes one needs a net right."""
    with ModelServer() as server:
        async with room(tmp_path, server) as here:
            who = here.standings.enter("coder")
            for count, (path, body, part) in enumerate(FETCHED, 1):
                assert (await here.post("coder", path, {**body, **part})).status_code == 403
                assert here.standings.counted["coder", "net connect"] == count
            assert not server.requests
            here.standings.put(replace(who, rights=(*who.rights, right("net", "connect", "img.example.org"))))
            for path, body, part in FETCHED:
                assert (await here.post("coder", path, {**body, **part})).status_code == 200


async def test_models_need_a_right_and_a_provider_that_is_open_for_them(tmp_path: Path) -> None:
    """Both are asked, and each refusal has its rule."""
    with ModelServer() as server:
        async with room(tmp_path, server, models=("small-*",)) as here:
            here.standings.enter("coder", rights=(right("llm", "call", "openai/small-1"),))
            assert (await here.chat("coder")).status_code == 200
            assert (await here.chat("coder", model="small-2")).status_code == 403
            assert (await here.chat("coder", model="large-1")).status_code == 403
            assert (await here.post("coder", "anthropic/v1/messages", MESSAGES)).status_code == 403
            assert here.standings.counted == {("coder", "llm call"): 2, ("coder", "llm:model"): 1}
            assert len(server.requests) == 1


async def test_without_a_budget_there_is_no_model(tmp_path: Path) -> None:
    """No budget, no call."""
    with ModelServer() as server:
        async with room(tmp_path, server) as here:
            here.standings.enter("coder", budget=None)
            assert (await here.chat("coder")).status_code == 403
            assert here.standings.counted["coder", "llm:budget"] == 1


async def test_a_body_that_is_no_request_is_said_to_be_none(tmp_path: Path) -> None:
    """400, nothing is sent, nothing breaks."""
    with ModelServer() as server:
        async with room(tmp_path, server) as here:
            here.standings.enter("coder")
            head = {"authorization": "Bearer token-coder"}
            for body in (b"", b"[]", b"{", b'"x"', b"[" * 100_000, b'{"model": 1}', b'{"model": "a b"}'):
                answer = await here.client.post(f"{here.url}/llm/openai/v1/responses", content=body, headers=head)
                assert answer.status_code == 400, body[:20]
                assert answer.json()["error"]["type"] == "invalid_request_error"
            assert not server.requests


async def test_the_filter_masks_what_goes_out_and_counts_it(tmp_path: Path) -> None:
    """`privacy.policy.outbound`."""
    secret = "sk-" + "ab12" * 8
    with ModelServer() as server:
        async with room(tmp_path / "soft", server, privacy="soft") as here:
            here.standings.enter("coder")
            assert (await here.chat("coder", f"my key is {secret}")).status_code == 200
            assert secret not in str(server.requests[-1].body)
            assert here.app.gauges.masked == {("openai", "secret"): 1}
        async with room(tmp_path / "off", server) as here:
            here.standings.enter("coder")
            await here.chat("coder", f"my key is {secret}")
            assert secret in str(server.requests[-1].body)


async def test_odd_text_and_depth_break_nothing(tmp_path: Path) -> None:
    """Half a surrogate pair passes as it came; what is nested too deep is refused; `prompt` of completions is the text."""
    with ModelServer() as server:
        async with room(tmp_path, server, privacy="soft") as here:
            here.standings.enter("coder")
            head = {"authorization": "Bearer token-coder"}
            url = f"{here.url}/llm/openai/v1/chat/completions"
            half = b'{"model":"small-1","messages":[{"role":"user","content":"\\ud800"}]}'
            assert (await here.client.post(url, content=half, headers=head)).status_code == 200
            assert server.requests[-1].body["messages"][0]["content"] == "\ud800"
            for depth in (400, 900, 5000):
                deep = b'{"model":"small-1","messages":[],"x":' + b"[" * depth + b"]" * depth + b"}"
                answer = await here.client.post(url, content=deep, headers=head)
                assert answer.status_code in (200, 400), depth
            assert answer.status_code == 400
            await here.post("coder", "openai/v1/completions", {"model": "small-1", "prompt": "Once"})
            assert server.requests[-1].body["prompt"] == "Once"


async def test_many_large_requests_cost_the_agent_that_sends_them(tmp_path: Path) -> None:
    """A body that is too large, one of too many parts, and many at once are refused; a neighbour is served meanwhile."""
    with ModelServer() as server:
        async with room(tmp_path, server) as here:
            here.standings.enter("greedy")
            here.standings.enter("coder")
            head = {"authorization": "Bearer token-greedy"}
            url = f"{here.url}/llm/openai/v1/chat/completions"
            for body in (b" " * (LARGEST + 1), b'{"model":"small-1","x":[' + b"0," * MOST + b"0]}"):
                assert (await here.client.post(url, content=body, headers=head)).status_code == 413
            lines = [await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2])) for _ in range(3)]
            for _, writer in lines:
                said = "POST /llm/openai/v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-greedy\r\n"
                writer.write(f"{said}content-length: {LARGEST - 1}\r\n\r\n{{".encode())
            answers = [asyncio.ensure_future(reader.readline()) for reader, _ in lines]
            done, _ = await asyncio.wait(answers, timeout=5, return_when=asyncio.FIRST_COMPLETED)
            assert [one.result().split()[1] for one in done] == [b"503"]
            assert (await here.chat("coder")).status_code == 200
            for _, writer in lines:
                writer.close()
            await until(lambda: not here.app.room.held, "nothing is held any more")
            await asyncio.gather(*answers)


async def test_a_key_that_is_not_set_is_named(tmp_path: Path) -> None:
    """The name of the secret, for the operator."""
    with ModelServer() as server:
        async with room(tmp_path, server, env_var="OTHER_KEY") as here:
            here.standings.enter("coder", budget=BUDGET)
            answer = await here.chat("coder")
            assert answer.status_code == 503
            assert "OTHER_KEY" in answer.text
            assert KEY not in answer.text
