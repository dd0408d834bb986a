"""Parses, validates and authorizes a request."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request

from agentbox.gateway.agent_api.approvals_required import is_approval_required
from agentbox.gateway.authorizer import AccessDenied, Authorizer
from agentbox.gateway.llm import meter
from agentbox.gateway.llm.config import Provider
from agentbox.gateway.llm.gateway_counters import GatewayCounters
from agentbox.gateway.llm.model_request import ModelRequest, encode_body
from agentbox.gateway.llm.rights import may_use_any_model, may_use_model
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError, VendorCall, VendorProtocol
from agentbox.policy.redaction.redactor import RedactionFailed, Redactor
from agentbox.policy.rights.authorization import Authorization
from agentbox.policy.rights.budget_usage import has_money_budget

MAX_BODY: Final = 16 << 20  # bytes of a request
MAX_PARTS: Final = (
    500_000  # members and items: each takes up to a hundred times its bytes once parsed
)
INLINE_BODY: Final = 64 << 10  # bytes of a body that is redacted on the event loop
_MODEL: Final = re.compile(r"[!-~]{1,200}")
_FORWARDED_HEADERS: Final = (b"accept", b"user-agent")
_REDACTION_FLOW: Final = "outbound"  # name in [privacy.policy]


def find_token(headers: Mapping[bytes, bytes], query: bytes) -> str:
    """The agent's token, in any header or parameter where vendor SDKs put a key; else ""."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    for name in (b"x-api-key", b"x-goog-api-key"):
        if value := headers.get(name, b"").decode("latin-1").strip():
            return value
    return dict(parse_qsl(query.decode("latin-1"))).get("key", "")


def declared_size(headers: Mapping[bytes, bytes]) -> int:
    """The declared length of the body, or the maximum if unknown. Raises ModelGatewayError
    (413)."""
    declared = headers.get(b"content-length", b"")
    size = int(declared) if declared.isdigit() else MAX_BODY
    if size > MAX_BODY:
        raise _too_large()
    return size


async def read_body(request: Request) -> bytes:
    """Reads the body. Raises ModelGatewayError (413) if it is too large, ClientDisconnect if the
    agent disconnected."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise _too_large()
    return bytes(body)


def _too_large() -> ModelGatewayError:
    return ModelGatewayError("large", f"the maximum size of a request is {MAX_BODY >> 20} MiB")


def parse_body(raw: bytes) -> dict[str, Any]:
    """Raises ModelGatewayError if the body is not a JSON object."""
    if sum(raw.count(char) for char in (b",", b"[", b"{")) > MAX_PARTS:
        raise ModelGatewayError("large", f"the maximum number of members and items is {MAX_PARTS}")
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        raise ModelGatewayError("invalid", "the body is not valid JSON") from None
    if not isinstance(document, dict):
        raise ModelGatewayError("invalid", "the body must be a JSON object")
    return document


async def build_request(
    authorizer: Authorizer,
    caller: Authorization,
    provider: Provider,
    protocol: VendorProtocol,
    call: VendorCall,
    scope: Any,
    headers: Mapping[bytes, bytes],
    raw: bytes,
) -> ModelRequest:
    """Raises ModelGatewayError for an invalid body, AccessDenied for a missing right."""
    body = parse_body(raw) if call.body else None
    model = call.model or (body.get("model") if body is not None else "")
    if call.lists:
        if not may_use_any_model(caller, provider):
            raise AccessDenied("llm:call", f"this agent may not use any model of {provider.name}")
    else:
        if not isinstance(model, str) or not _MODEL.fullmatch(model):
            raise ModelGatewayError("invalid", "model must be the name of a model")
        if not provider.serves(model):
            raise ModelGatewayError(
                "forbidden",
                f"{provider.name} does not serve {model}",
                rule="llm:model",
                detail=model,
            )
    streams = call.streams or (body is not None and _wants_stream(body))
    target = _target(protocol, call, scope["query_string"])
    request = ModelRequest(
        caller=caller,
        call=call,
        model="" if call.lists else str(model),
        method=scope["method"],
        target=target,
        body=body,
        headers=_headers(protocol, headers),
        input_tokens=0,
        max_output=None,
        choices=0,
        streams=streams,
        is_model_allowed=lambda name: may_use_model(caller, provider, name),
    )
    if body is not None:
        urls = protocol.screen(call, body).urls
        if has_money_budget(caller):
            _check_price(protocol, body)
        request.urls = len(urls)
        for url in urls:
            await _check_fetch(authorizer, caller, url)
        if call.generates:
            request.max_output, request.choices = (
                protocol.max_output(call, body),
                protocol.choices(body),
            )
        if call.counts_input:
            request.input_tokens = meter.estimate(body, len(raw))
    if not call.lists:
        await authorizer.check(caller, "llm", "call", f"{provider.name}/{model}")
    return request


def _check_price(protocol: VendorProtocol, body: Mapping[str, Any]) -> None:
    """Raises ModelGatewayError for a member that makes the call cost more than its listed price."""
    for name, values in protocol.priced.items():
        value = body.get(name)
        if value is not None and value not in values:
            raise ModelGatewayError(
                "forbidden",
                f"{name} = {str(value)[:64]} has another price than the manifest lists, and this"
                " agent has a budget in money",
                rule="llm:price",
                detail=name,
            )


async def _check_fetch(authorizer: Authorizer, caller: Authorization, url: str) -> None:
    """Requires the agent's own right to a URL that the provider would fetch. Raises AccessDenied,
    ModelGatewayError."""
    if url.startswith("data:"):
        return
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        host = parts.hostname or ""
    except (ValueError, KeyError):
        raise ModelGatewayError(
            "forbidden", "a part has a URL that is neither http nor https", rule="llm:part"
        ) from None
    if not host or parts.username is not None:
        raise ModelGatewayError(
            "forbidden", "a part has a URL without a plain host", rule="llm:part"
        )
    formatted = f"[{host}]" if ":" in host else host.rstrip(".").lower()
    value = f"{formatted}:{port}"
    if is_approval_required(caller, "host", value):
        await authorizer.check(caller, "net", "connect", value, consume=False)
        await authorizer.approve(caller, "host", value, {"target": value, "url": url})
    await authorizer.check(caller, "net", "connect", value)


def _wants_stream(body: Mapping[str, Any]) -> bool:
    """Rejects truthy values that servers interpret differently, since usage could be missed. Raises
    ModelGatewayError."""
    value = body.get("stream")
    if value is not None and not isinstance(value, bool):
        raise ModelGatewayError("invalid", "stream must be true or false")
    return value is True


def _target(protocol: VendorProtocol, call: VendorCall, query: bytes) -> str:
    """Raises ModelGatewayError for duplicate parameters and for response formats without readable
    usage."""
    pairs = [
        (name, value)
        for name, value in parse_qsl(query.decode("latin-1"))
        if name in protocol.query_parameters
    ]
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise ModelGatewayError("invalid", "duplicate query parameter")
    if call.streams and parameters.get("alt") != "sse":
        raise ModelGatewayError("invalid", "streams are supported as events only: set alt=sse")
    if not call.streams and parameters.get("alt", "json") != "json":
        raise ModelGatewayError("invalid", "responses are supported as JSON only: omit alt")
    return f"{call.path}?{urlencode(parameters)}" if parameters else call.path


def _headers(protocol: VendorProtocol, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    forwarded = [
        (name, headers[name])
        for name in (*_FORWARDED_HEADERS, *protocol.headers)
        if name in headers
    ]
    return [*forwarded, (b"accept-encoding", b"identity")]


def max_input(request: ModelRequest) -> int:
    """The bound of its input tokens."""
    return meter.maximum(request.body, len(encode_body(request.body or {})), request.urls)


def mask_body(
    redactor: Redactor, provider: Provider, gauges: GatewayCounters, request: ModelRequest
) -> None:
    """Masks and counts the findings of the filter `outbound`. Raises ModelGatewayError under the
    policy `strict`."""
    if request.body is None:
        return
    try:
        cleaned = redactor.redact(
            _REDACTION_FLOW, request.call.name, {"body": request.body}, ("/body/**",), ()
        )
    except RedactionFailed as error:
        raise ModelGatewayError(
            "forbidden",
            f"the privacy filter rejected the request: {error}",
            rule="privacy:outbound",
        ) from None
    request.body = cleaned.document["body"]
    for name, count in cleaned.counts.items():
        gauges.masked[provider.name, name] += count
    if cleaned.failed:
        gauges.unsearched[provider.name] += cleaned.failed
