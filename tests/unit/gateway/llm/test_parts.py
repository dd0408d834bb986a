"""Parts of a request that would work outside of the box: hosted tools, remote servers, and what a provider would fetch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from support.fake_authorizer import right
from support.model_gateway import model_gateway
from support.model_server import ModelServer

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
    ("openai/v1/chat/completions", CHAT, {"web_search_options": {}}),
    ("openai/v1/chat/completions", CHAT, {"Tools": [{"type": "web_search"}]}),
    ("openai/v1/chat/completions", CHAT, {"toolſ": [{"type": "web_search"}]}),
    ("openai/v1/chat/completions", CHAT, {"MAX_TOKENS": 1_000_000}),
    ("openai/v1/chat/completions", CHAT, {"plugins": [{"id": "web"}]}),
    ("openai/v1/chat/completions", CHAT, {"models": ["large-1"]}),
    ("openai/v1/chat/completions", CHAT, {"search_parameters": {"mode": "on"}}),
    ("openai/v1/chat/completions", CHAT, {"api_base": "https://x.example"}),
    ("openai/v1/chat/completions", CHAT, {"messages": [{"role": "user", "content": [{"file": {"File_Id": "f"}}]}]}),
    ("openai/v1/responses", RESPONSES, {"tools": [{"type": "function", "Type": "web_search"}]}),
    ("anthropic/v1/messages", MESSAGES, {"MCP_Servers": [{"type": "url", "url": "https://x.example", "name": "x"}]}),
    ("anthropic/v1/messages", MESSAGES, {"container": {}}),
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
    (COUNT, CONTENTS, {"generate_content_request": {"tools": [{"urlContext": {}}]}}),
]  # fmt: skip

FETCHED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("openai/v1/chat/completions", CHAT,
     {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://img.example.org/a.png"}}]}]}),
    ("openai/v1/responses", RESPONSES,
     {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://img.example.org/a.png"}]}]}),
    ("openai/v1/responses", RESPONSES,
     {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "https://img.example.org/a.pdf"}]}]}),
    ("openai/v1/chat/completions", CHAT,
     {"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "https://img.example.org/a"}}]}]}),
    ("openai/v1/chat/completions", CHAT,
     {"messages": [{"role": "user", "content": [{"type": "audio_url", "audio_url": "https://img.example.org/a"}]}]}),
    ("anthropic/v1/messages", MESSAGES,
     {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://img.example.org/a"}}]}]}),
    (GENERATE, CONTENTS, {"contents": [{"parts": [{"fileData": {"fileUri": "https://img.example.org/a.pdf"}}]}]}),
]  # fmt: skip


async def test_parts_that_work_outside_of_the_box_are_refused_by_name(tmp_path: Path) -> None:
    """Hosted tools, remote servers, background jobs, stored objects, of each kind and spelling."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            for count, (path, body, part) in enumerate(PARTS, 1):
                response = await gateway.post("coder", path, {**body, **part})
                assert response.status_code == 403, part
                assert gateway.authorizer.refusal_counts["coder", "llm:part"] == count
            assert not server.requests


async def test_tools_that_the_agent_carries_out_itself_pass(tmp_path: Path) -> None:
    """Names within a tool's schema or data are only names."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            gateway.authorizer.add_agent("coder")
            function = {"type": "function", "name": "look", "parameters": FUNCTION}
            own = [function, {"type": "custom", "name": "patch"}, {"type": "local_shell"}]
            input_value = {
                "type": "function_call",
                "call_id": "c",
                "name": "look",
                "arguments": '{"file_id": "1"}',
            }
            request = {**RESPONSES, "tools": own, "input": [*RESPONSES["input"], input_value]}
            assert (await gateway.post("coder", "openai/v1/responses", request)).status_code == 200
            tools = [
                {"name": "look", "input_schema": FUNCTION},
                {"type": "bash_20250124", "name": "bash"},
            ]
            used = {
                "type": "tool_use",
                "id": "t",
                "name": "look",
                "input": {"file_id": "1", "type": "url", "url": "x"},
            }
            messages = [*MESSAGES["messages"], {"role": "assistant", "content": [used]}]
            assert (
                await gateway.post(
                    "coder",
                    "anthropic/v1/messages",
                    {**MESSAGES, "tools": tools, "messages": messages},
                )
            ).is_success
            declared = {"tools": [{"functionDeclarations": [{"name": "look"}]}]}
            assert (
                await gateway.post("coder", GENERATE, {**CONTENTS, **declared})
            ).status_code == 200


async def test_what_the_provider_would_fetch_the_agent_must_be_allowed_to_reach(
    tmp_path: Path,
) -> None:
    """A URL in each place that accepts one needs a net right."""
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            caller = gateway.authorizer.add_agent("coder")
            for count, (path, body, part) in enumerate(FETCHED, 1):
                assert (await gateway.post("coder", path, {**body, **part})).status_code == 403
                assert gateway.authorizer.refusal_counts["coder", "net connect"] == count
            assert not server.requests
            gateway.authorizer.replace_authorization(
                replace(caller, rights=(*caller.rights, right("net", "connect", "img.example.org")))
            )
            for path, body, part in FETCHED:
                assert (await gateway.post("coder", path, {**body, **part})).status_code == 200


async def test_what_the_provider_would_fetch_waits_for_the_approval_that_its_host_needs(
    tmp_path: Path,
) -> None:
    """An approver sees the complete URL; without approval nothing is sent."""
    path, body, part = FETCHED[0]
    with ModelServer() as server:
        async with model_gateway(tmp_path, server) as gateway:
            rights = (right("llm", "call", "openai"), right("net", "connect", "img.example.org"))
            caller = gateway.authorizer.add_agent(
                "coder", rights=rights, approval_required=("host:*.example.org",)
            )
            assert (await gateway.post("coder", path, {**body, **part})).status_code == 403
            told = {"target": "img.example.org:443", "url": "https://img.example.org/a.png"}
            assert gateway.authorizer.approval_requests == [
                (caller.agent_id, "host", told["target"], told)
            ]
            assert not server.requests
            gateway.authorizer.approves = True
            assert (await gateway.post("coder", path, {**body, **part})).status_code == 200
