"""Headers of every response, and checks of request headers."""

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from agentbox.core.http.problems import Misdirected, NotAcceptable, UnsupportedMediaType, invalid
from agentbox.core.ids import new_trace_id, uuid7
from agentbox.core.slot_errors import ValueTooLarge

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
REQUEST_ID = "[A-Za-z0-9._:-]{1,64}"
_REQUEST_ID = re.compile(REQUEST_ID)
_TRACEPARENT = re.compile(
    "(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})-[0-9a-f]{2}"
    "(?P<more>-.*)?"
)
_SINGLE = frozenset(
    {
        b"authorization",
        b"host",
        b"content-type",
        b"content-length",
        b"idempotency-key",
        b"last-event-id",
        b"range",
        b"if-range",
        b"traceparent",
        b"if-modified-since",
        b"if-unmodified-since",
        b"origin",
        b"sec-fetch-site",
        b"agentbox-session-key",
    }
)
# No user, path, query or fragment: the remainder could be taken for another host.
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{0,5})?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class HasApiAddress(Protocol):
    """The address the API is published on, and its URL for others, "" if unknown."""

    @property
    def publish_address(self) -> str: ...

    @property
    def public_base(self) -> str: ...


class HasMetricsAddress(Protocol):
    """The address that the metrics are published on."""

    @property
    def publish_address(self) -> str: ...


class BoxAddresses(Protocol):
    """The part of a plan that names the box."""

    @property
    def name(self) -> str: ...

    @property
    def api(self) -> HasApiAddress: ...

    @property
    def observability(self) -> HasMetricsAddress: ...


def decode_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Lower-case name -> value; the last one of repeated names."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def request_id(headers: Mapping[str, str]) -> str:
    """The caller's `X-Request-Id` if valid, else a new id."""
    value = headers.get("x-request-id", "")
    return value if _REQUEST_ID.fullmatch(value) else uuid7()


def trace_id(headers: Mapping[str, str]) -> str:
    """The id of a valid `traceparent` (W3C Trace Context, any version), else a new id."""
    match = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    if match is None or match["version"] == "ff" or (match["version"] == "00" and match["more"]):
        return new_trace_id()
    zero = not match["trace"].strip("0") or not match["parent"].strip("0")
    return new_trace_id() if zero else match["trace"]


def check_duplicates(raw: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises ValidationError for a duplicate of a header that must be unique: an upstream proxy may
    have used the other one.
    """
    names = [name.lower() for name, _ in raw if name.lower() in _SINGLE]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise invalid(duplicate.decode(), "duplicate header")


def has_body(headers: Mapping[str, str]) -> bool:
    """True when a body is announced."""
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def allowed_hosts(plan: BoxAddresses) -> frozenset[str]:
    """Loopback names, the address the API is published on, and the host of `api.public_base`."""
    base = urlsplit(plan.api.public_base).hostname if plan.api.public_base else None
    return _LOOPBACK | {plan.api.publish_address.lower()} | ({base.lower()} if base else set())


def check_host(headers: Mapping[str, str], allowed: frozenset[str]) -> None:
    """Raises Misdirected when `Host` names another server. Its port does not matter: it may be
    mapped.
    """
    host = parse_host(headers.get("host", ""))
    if host not in allowed and not _is_loopback(host):
        raise Misdirected(
            "cannot serve this Host: it is neither a loopback name nor the configured address"
        )


def probe_hosts(plan: BoxAddresses) -> frozenset[str]:
    """Hosts accepted from probers and scrapers: the allowed hosts, the box's own names and the
    address of its metrics.
    """
    names = {plan.name, socket.gethostname(), plan.observability.publish_address}
    return allowed_hosts(plan) | {name.lower() for name in names}


def check_probe_host(headers: Mapping[str, str], allowed: frozenset[str]) -> None:
    """Raises Misdirected for a host name that is not the box's. IP addresses and a missing `Host`
    are accepted: a kubelet uses the address of the pod, and a browser after DNS rebinding sends
    neither.
    """
    host = parse_host(headers.get("host", ""))
    if "host" in headers and not _is_address(host):
        check_host(headers, allowed)


def parse_host(header: str) -> str:
    """The host of a `Host` header in lower case, without brackets; "" if it is not `host` or
    `host:port`.
    """
    match = _AUTHORITY.fullmatch(header.lower())
    return (match["v6"] or match["name"]) if match else ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_accept(headers: Mapping[str, str], offered: str) -> None:
    """Raises NotAcceptable if `Accept` excludes both what the route offers and problem
    documents.
    """
    with suppress(NotAcceptable):
        negotiate(headers, ("application/problem+json",))
        return
    negotiate(headers, (offered,))


def negotiate(headers: Mapping[str, str], offered: Sequence[str]) -> str:
    """The offered type that `Accept` prefers (RFC 9110 12.5.1), the first of equals. Raises
    NotAcceptable.
    """
    ranges = [_media_range(item) for item in headers.get("accept", "*/*").lower().split(",")]

    def quality(media_type: str) -> float:
        patterns = (media_type, media_type.partition("/")[0] + "/*", "*/*")
        return next((q for pattern in patterns for name, q in ranges if name == pattern), 0.0)

    best = max(offered, key=quality)
    if quality(best) <= 0:
        raise NotAcceptable(
            f"cannot answer as {headers['accept']}: only {offered[0]} is available",
            offered=list(offered),
        )
    return best


def _media_range(text: str) -> tuple[str, float]:
    """A media range and its weight; an invalid weight counts as 1."""
    name, *parameters = [item.strip() for item in text.split(";")]
    weight = next((item[2:] for item in parameters if item.startswith("q=")), "1")
    try:
        return name, float(weight)
    except ValueError:
        return name, 1.0


def check_content_type(headers: Mapping[str, str], accepted: tuple[str, ...]) -> str:
    """The media type of the body. Raises UnsupportedMediaType if it is not accepted."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in accepted:
        raise UnsupportedMediaType(
            f"cannot read a body of type {media_type or '(none)'}: send {accepted[0]}",
            accepted=list(accepted),
        )
    return media_type


def body_too_large(observed: int, cap: int) -> ValueTooLarge:
    """The error for a body over `cap` bytes; 0 means that the route accepts none."""
    detail = (
        f"cannot accept a body of {observed} bytes: the maximum is {cap}"
        if cap
        else "cannot accept a body on this route"
    )
    return ValueTooLarge(
        detail, limit="body", observed=observed, cap=cap, config_path="api.max_body" if cap else ""
    )
