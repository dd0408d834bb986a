"""Model providers behind the gateway: calls that are not allowed, tools that run elsewhere, tokens
of others.
"""

import json
from typing import Any, Final

from agentbox.core.paths import environment
from agentbox.sandbox.attacks.attempts import worst
from agentbox.sandbox.attacks.case import PASSED, AttackGroup, TargetInfo, TargetMissing
from agentbox.sandbox.attacks.gateway_client import post, providers, token

SUITE = AttackGroup("models")
_REFUSED: Final = {"403": "model gateway"}
_ODD: Final = {"403": "model gateway", "404": "model gateway", "400": "model gateway"}
_TESTS: Final = "tests/unit/gateway/llm/test_refusals.py"
_CONTENT_TESTS: Final = "tests/unit/gateway/llm/test_parts.py"
_CHAT: Final = {"model": "any", "messages": [{"role": "user", "content": "hello"}]}


@SUITE.case(
    "key",
    "looks for a provider's key in its own environment",
    {"its own token": "model gateway"},
    tests=(
        (
            "tests/unit/gateway/llm/test_pass_through.py::"
            "test_a_call_has_the_box_s_key_and_is_charged_what_the_provider_says"
        ),
    ),
)
def _key(_facts: TargetInfo) -> str:
    agent_token = token()
    keys = [
        value
        for name, value in environment().items()
        if name.endswith(("_API_KEY", "_KEY", "_SECRET"))
    ]
    return "its own token" if all(value == agent_token for value in keys) else PASSED


@SUITE.case(
    "paths",
    "makes calls that are not on the list of a provider's calls",
    _REFUSED | {"404": "model gateway"},
    tests=(f"{_TESTS}::test_only_listed_calls_pass",),
)
def _paths(facts: TargetInfo) -> str:
    tails = (
        "v1/files",
        "v1/fine_tuning/jobs",
        "v1/batches",
        "v1/organization/api_keys",
        "v1/assistants",
        "admin",
    )
    return worst(
        _classify(post(f"/llm/{name}/{tail}", b"{}")) for name in providers(facts) for tail in tails
    )


@SUITE.case(
    "odd-paths",
    "writes an ambiguous path",
    _ODD,
    tests=(f"{_TESTS}::test_a_path_in_another_form_is_refused",),
)
def _odd_paths(facts: TargetInfo) -> str:
    tails = (
        "../files",
        "v1/../files",
        "v1/%2e%2e/files",
        "v1%2ffiles",
        "v1//files",
        "v1/./chat/completions",
        "v1\\files",
        "v1/chat/completions/../../files",
        "v1/files?/chat/completions",
        "v1/files#/chat/completions",
        "v1/files;/chat",
        "@192.0.2.1/v1/chat/completions",
        "v1/chat/completions%00",
        "v1/chat/completions%0d%0aX:%20y",
    )
    return worst(
        _classify(post(f"/llm/{name}/{tail}", b"{}")) for name in providers(facts) for tail in tails
    )


@SUITE.case(
    "hosted-tools",
    "makes the provider fetch, search, run or store something",
    _REFUSED,
    tests=(
        f"{_CONTENT_TESTS}::test_parts_that_work_outside_of_the_box_are_refused_by_name",
        f"{_CONTENT_TESTS}::test_what_the_provider_would_fetch_the_agent_must_be_allowed_to_reach",
    ),
)
def _hosted_tools(facts: TargetInfo) -> str:
    image = {"type": "image_url", "image_url": {"url": "http://192.0.2.1/?secret"}}
    bodies: tuple[dict[str, Any], ...] = (
        {**_CHAT, "tools": [{"type": "web_search"}]},
        {**_CHAT, "tools": [{"type": "mcp", "server_url": "http://192.0.2.1"}]},
        {**_CHAT, "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
        {**_CHAT, "background": True},
        {**_CHAT, "messages": [{"role": "user", "content": [image]}]},
        {**_CHAT, "mcp_servers": [{"url": "http://192.0.2.1"}]},
        {**_CHAT, "web_search_options": {}},
        {**_CHAT, "Tools": [{"type": "web_search"}]},
        {**_CHAT, "plugins": [{"id": "web"}]},
        {
            **_CHAT,
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "video_url", "video_url": image["image_url"]}],
                }
            ],
        },
    )
    paths = [
        f"/llm/{name}/{tail}"
        for name in providers(facts)
        for tail in ("v1/chat/completions", "v1/messages")
    ]
    return worst(
        _classify(post(path, json.dumps(body).encode())) for path in paths for body in bodies
    )


@SUITE.case(
    "no-token",
    "calls a model without a token, with a made-up one, with that of an agent that has ended",
    {"401": "model gateway"},
    tests=("tests/unit/gateway/llm/test_pass_through.py::test_no_token_no_model",),
)
def _no_token(facts: TargetInfo) -> str:
    agent_token = token()
    forged = ("", "x" * len(agent_token), agent_token[:-1], *filter(None, (facts.ended_token,)))
    body = json.dumps(_CHAT).encode()
    paths = [f"/llm/{name}/v1/chat/completions" for name in providers(facts)]
    return worst(_classify(post(path, body, bearer=bearer)) for path in paths for bearer in forged)


@SUITE.case(
    "headers",
    "injects headers for the provider into its request",
    {"400": "model gateway", "403": "model gateway"},
    tests=(f"{_TESTS}::test_a_body_that_is_no_request_is_said_to_be_none",),
)
def _headers(facts: TargetInfo) -> str:
    heads = (
        "X: a\nAuthorization: Bearer other\r\n",
        "Content-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\n",
    )
    paths = [f"/llm/{name}/v1/chat/completions" for name in providers(facts)]
    return worst(_classify(post(path, b"[]", head=head)) for path in paths for head in heads)


@SUITE.case(
    "budget",
    "reconnects to get a new budget",
    {"403": "model gateway", "429": "model gateway"},
    tests=(
        (
            "tests/unit/gateway/llm/test_ledger.py::"
            "test_a_restart_and_a_new_generation_find_what_was_spent"
        ),
        "tests/unit/gateway/llm/test_streams.py::test_parallel_streams_cannot_overdraw",
    ),
)
def _budget(facts: TargetInfo) -> str:
    """An agent of the default profile that is not in the manifest has no budget: each connection
    must be refused.
    """
    paths = [f"/llm/{name}/v1/chat/completions" for name in providers(facts)]
    replies = [post(path, json.dumps(_CHAT).encode()) for path in paths for _ in range(5)]
    if "200" in replies:
        raise TargetMissing("off: this agent has a budget, of which this spent a little")
    return worst(map(_classify, replies))


def _classify(reply: str) -> str:
    """Only the gateway's own answers count as stopped; a provider's answer means the
    call passed.
    """
    return (
        reply
        if reply in ("400", "401", "403", "404", "429", "closed") or not reply.isdecimal()
        else f"{PASSED}: {reply}"
    )
