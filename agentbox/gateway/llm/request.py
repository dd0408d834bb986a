"""From bytes to a request that may pass: who asks, for what, and whether every part of it is allowed."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from agentbox.gateway.agent_api.approvals_required import waits
from agentbox.gateway.authorizer import Authority, Refused
from agentbox.gateway.llm.config import Provider
from agentbox.gateway.llm.exchange import Asked
from agentbox.gateway.llm.gauges import Gauges
from agentbox.gateway.llm.meter import estimate
from agentbox.gateway.llm.rights import may, may_any
from agentbox.gateway.llm.types import Answer, Call, Kind
from agentbox.policy.redaction.guard import Guard, Rejected
from agentbox.policy.rights.standing import Standing

LARGEST: Final = 16 << 20  # bytes of a request
PARTS: Final = 500_000  # members and items: each takes up to a hundred times its bytes once it is read
SMALL: Final = 64 << 10  # bytes of a body that the filter searches without leaving the loop
_MODEL: Final = re.compile(r"[!-~]{1,200}")
_PASSED: Final = (b"accept", b"user-agent")
_FLOW: Final = "outbound"  # name in [privacy.policy]


def bearer(headers: Mapping[bytes, bytes], query: bytes) -> str:
    """The agent's own token, wherever an SDK of some kind puts a key; "" where there is none."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    for name in (b"x-api-key", b"x-goog-api-key"):
        if value := headers.get(name, b"").decode("latin-1").strip():
            return value
    return dict(parse_qsl(query.decode("latin-1"))).get("key", "")


def size_of(headers: Mapping[bytes, bytes]) -> int:
    """Bytes of the body to come; the most there may be where that is not said. Raises Answer (413)."""
    declared = headers.get(b"content-length", b"")
    size = int(declared) if declared.isdigit() else LARGEST
    if size > LARGEST:
        raise _large()
    return size


async def read_body(receive: Any) -> bytes:
    """The whole. Raises Answer (413) for one that is too large, ConnectionError when the agent is gone."""
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > LARGEST:
            raise _large()
        if not message.get("more_body", False):
            return b"".join(pieces)


def _large() -> Answer:
    return Answer("large", f"a request may have {LARGEST >> 20} MiB at most")


def parse(raw: bytes) -> dict[str, Any]:
    """Raises Answer for what is no JSON object."""
    if sum(raw.count(mark) for mark in (b",", b"[", b"{")) > PARTS:
        raise Answer("large", f"a request may have {PARTS} parts at most")
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise Answer("invalid", "the body is no JSON") from None
    if not isinstance(found, dict):
        raise Answer("invalid", "the body is no JSON object")
    return found


async def asked(
    authority: Authority, who: Standing, provider: Provider, kind: Kind, call: Call, scope: Any, headers: Mapping[bytes, bytes],
    raw: bytes,
) -> Asked:  # fmt: skip
    """Raises Answer for a body or a right that does not fit, Refused for what the authority refuses."""
    body = parse(raw) if call.body else None
    model = call.model or (body.get("model") if body is not None else "")
    if call.lists:
        if not may_any(who, provider):
            raise Refused("llm:call", f"no model of {provider.name} is allowed to this agent")
    else:
        if not isinstance(model, str) or not _MODEL.fullmatch(model):
            raise Answer("invalid", "model must be the name of a model")
        if not provider.serves(model):
            raise Answer("forbidden", f"{provider.name} is not open for {model}", rule="llm:model", detail=model)
    streams = call.streams or (body is not None and _wants_stream(body))
    target = _target(kind, call, scope["query_string"])
    found = Asked(
        who=who, call=call, model="" if call.lists else str(model), method=scope["method"], target=target, body=body, headers=_headers(kind, headers), given=0,
        wanted=None, answers=0, streams=streams, allowed=lambda name: may(who, provider, name),
    )  # fmt: skip
    if body is not None:
        for url in kind.screen(call, body).urls:
            await _fetched(authority, who, url)
        if call.generates:
            found.wanted, found.answers = kind.wanted(call, body), kind.answers(body)
        if call.counts_input:
            found.given = estimate(body, len(raw))
    if not call.lists:
        await authority.check(who, "llm", "call", f"{provider.name}/{model}")
    return found


async def _fetched(authority: Authority, who: Standing, url: str) -> None:
    """What the provider would fetch for the agent, the agent must be allowed to reach. Raises Refused, or Answer."""
    if url.startswith("data:"):
        return
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        host = parts.hostname or ""
    except (ValueError, KeyError):
        raise Answer("forbidden", "a part is given by a URL that is neither http nor https", rule="llm:part") from None
    if not host or parts.username is not None:
        raise Answer("forbidden", "a part is given by a URL without a plain host", rule="llm:part")
    written = f"[{host}]" if ":" in host else host.rstrip(".").lower()
    value = f"{written}:{port}"
    if waits(who, "host", value):
        await authority.check(who, "net", "connect", value, take=False)
        await authority.approve(who, "host", value, {"target": value, "url": url})
    await authority.check(who, "net", "connect", value)


def _wants_stream(body: Mapping[str, Any]) -> bool:
    """Raises Answer for a word that one server takes for true and another does not: the usage would go unseen."""
    value = body.get("stream")
    if value is not None and not isinstance(value, bool):
        raise Answer("invalid", "stream must be true or false")
    return value is True


def _target(kind: Kind, call: Call, query: bytes) -> str:
    """Each parameter once. Raises Answer for one given twice, and for an answer in a form whose usage cannot be read."""
    pairs = [(name, value) for name, value in parse_qsl(query.decode("latin-1")) if name in kind.query]
    given = dict(pairs)
    if len(given) != len(pairs):
        raise Answer("invalid", "a parameter is given twice")
    if call.streams and given.get("alt") != "sse":
        raise Answer("invalid", "a stream is given as events only: ask with alt=sse")
    if not call.streams and given.get("alt", "json") != "json":
        raise Answer("invalid", "an answer is given as JSON only: leave alt out")
    return f"{call.path}?{urlencode(given)}" if given else call.path


def _headers(kind: Kind, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    passed = [(name, headers[name]) for name in (*_PASSED, *kind.headers) if name in headers]
    return [*passed, (b"accept-encoding", b"identity")]


def mask(guard: Guard, provider: Provider, gauges: Gauges, request: Asked) -> None:
    """The filter `outbound` on the body, whose findings are masked and counted. Raises Answer under the policy `strict`."""
    if request.body is None:
        return
    try:
        cleaned = guard.clean(_FLOW, request.call.name, {"body": request.body}, ("/body/**",), ())
    except Rejected as error:
        raise Answer("forbidden", f"the privacy filter refused the request: {error}", rule="privacy:outbound") from None
    request.body = cleaned.document["body"]
    for name, count in cleaned.counts.items():
        gauges.masked[provider.name, name] += count
    if cleaned.failed:
        gauges.unsearched[provider.name] += cleaned.failed
