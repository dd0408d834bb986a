"""Prices: integers, patterns, and what each vendor counts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.model_gateway import PRICE

from agentbox.gateway.llm.meter import maximum
from agentbox.gateway.llm.vendors.anthropic import ANTHROPIC
from agentbox.gateway.llm.vendors.gemini import GEMINI
from agentbox.gateway.llm.vendors.openai import OPENAI
from agentbox.plan.tables import ModelPricePlan
from agentbox.policy.cost import ModelPrice, TokenCounts, find_price, to_decimal, to_micros


@pytest.mark.parametrize(
    ("tokens", "cost"),
    [
        (TokenCounts(input=1_000_000), 3_000_000),
        (TokenCounts(output=1), 15),
        (TokenCounts(input=1_000_000, cache_read=1_000_000), 300_000),
        (TokenCounts(input=10, cache_read=4, cache_write=5), 23),  # 3 + 1.2 + 18.75, rounded up
        (TokenCounts(input=1, cache_read=1), 1),  # 0.3, rounded up
        (TokenCounts(input=2, cache_read=9, cache_write=9), 1),  # limited to the input
        (TokenCounts(), 0),
    ],
)
def test_a_cost_is_an_integer_rounded_up(tokens: TokenCounts, cost: int) -> None:
    """Tokens of the cache have their own prices, and are part of the input."""
    assert PRICE.cost(tokens) == cost


@given(st.integers(0, 10**15))
def test_amounts_have_one_text(micros: int) -> None:
    """What is written is read as the same number."""
    assert to_micros(to_decimal(micros)) == micros


@given(st.integers(0, 10**6), st.integers(0, 10**9))
def test_what_is_affordable_is_within_the_money(input_tokens: int, micros: int) -> None:
    """And one token more is not."""
    output = PRICE.affordable_output(input_tokens, micros)
    assert output is not None
    if output >= 0:
        assert PRICE.worst_cost(input_tokens, output) <= micros
        assert PRICE.worst_cost(input_tokens, output + 1) > micros
    else:
        assert PRICE.worst_cost(input_tokens, 0) > micros


def test_of_several_patterns_the_longest_counts() -> None:
    """The model's own name first."""
    texts = ModelPricePlan(input="1", output="1")
    names = ("*", "gpt-*", "gpt-4o*", "gpt-4o-mini")
    prices = {name: ModelPrice.parse(name, texts, "USD") for name in names}
    found = {
        model: price.pattern if (price := find_price(prices, model)) else ""
        for model in ("gpt-4o-mini", "gpt-4o-mini-2", "gpt-5", "o3")
    }
    assert found == {"gpt-4o-mini": "gpt-4o-mini", "gpt-4o-mini-2": "gpt-4o*", "gpt-5": "gpt-*", "o3": "*"}  # fmt: skip
    assert find_price({}, "o3") is None
    assert len({price.digest for price in prices.values()}) == 4


@pytest.mark.parametrize(
    ("protocol", "document", "counts"),
    [
        (OPENAI, {"usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}}, (100, 7, 60, 0)),
        (OPENAI, {"response": {"usage": {"input_tokens": 100, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 60}}}}, (100, 7, 60, 0)),
        (OPENAI, {"usage": {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": None}}, (5, 7, 0, 0)),
        (ANTHROPIC, {"type": "message", "usage": {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 7}}, (100, 7, 60, 30)),
        (GEMINI, {"usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 7, "totalTokenCount": 107}}, (100, 7, 60, 0)),
    ],
)  # fmt: skip
def test_each_vendor_counts_its_cache(protocol: Any, document: Any, counts: Any) -> None:
    """The input includes what was read from and written to the cache."""
    usage = protocol.usage(document)
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == counts


def test_the_bound_of_the_input_is_a_token_per_byte() -> None:
    """Of text; an image or document counts at most as a large one, however few bytes it has."""
    body = {"messages": [{"role": "user", "content": "x" * 900}]}
    assert maximum(body, len(json.dumps(body)), 0) >= len(json.dumps(body))
    data = "A" * 1_000_000
    for image in (
        {"type": "image", "source": {"media_type": "image/png", "data": data}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"inlineData": {"mimeType": "image/png", "data": data}},
    ):
        body = {"messages": [{"content": [image]}]}
        assert 31_250 <= maximum(body, len(json.dumps(body)), 0) < 32_000


def test_text_that_looks_like_media_is_text() -> None:
    """An agent writes it: in a text, and in what it gave a tool."""
    data = "A" * 100_000
    for block in (
        {"type": "text", "text": data},
        {"type": "tool_use", "input": {"media_type": "x", "data": data}},
        {"functionCall": {"args": {"mimeType": "x", "data": data}}},
        {"image": data},
    ):
        body = {"messages": [{"content": [block]}]}
        assert maximum(body, len(json.dumps(body)), 0) >= 100_000


def test_passes_of_a_compacting_call_are_counted() -> None:
    """The total of the last pass leaves the others out."""
    passes = [
        {"input_tokens": 180_000, "output_tokens": 3500},
        {"input_tokens": 23_000, "output_tokens": 1000},
    ]
    usage = ANTHROPIC.usage(
        {
            "type": "message",
            "usage": {"input_tokens": 23_000, "output_tokens": 1000, "iterations": passes},
        }
    )
    assert usage is not None
    assert (usage.input, usage.output) == (203_000, 4500)


def test_calls_without_text_have_a_bound() -> None:
    """Media that the provider fetches."""
    assert maximum({}, 2, 3) >= 3 * 8192
