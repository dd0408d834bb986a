"""Request and response heads: checked as bytes, parsed, then serialized anew without ambiguity."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote_to_bytes

import h11

from agentbox.gateway.proxy.refusals import ProxyRefusal
from agentbox.gateway.proxy.target import ProxyTarget

MAX_HEAD: Final = 32 << 10  # bytes
# Hop-by-hop headers (RFC 9110 section 7.6.1) and headers that the proxy sets itself.
_HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"http2-settings",
        b"expect",
        b"host",
        b"content-length",
    )
)
# With these some servers use another method, path or host than the one authorized.
_OVERRIDES: Final = frozenset(
    (
        b"x-http-method-override",
        b"x-http-method",
        b"x-method-override",
        b"x-original-method",
        b"x-original-url",
        b"x-original-uri",
        b"x-original-path",
        b"x-rewrite-url",
        b"x-rewrite-uri",
        b"x-override-url",
        b"x-http-path-override",
        b"x-envoy-original-path",
        b"x-original-host",
        b"x-host",
        b"x-http-host-override",
    )
)
_OVERRIDE_PARAMETERS: Final = _OVERRIDES | {b"-method"}
_NON_ALPHANUMERIC: Final = re.compile(rb"[^a-z0-9]")
_UNICODE_ESCAPE: Final = re.compile(rb"%u00([0-9a-f]{2})")  # ASP.NET
_BLANKS: Final = bytes(range(0x21))
_FORWARDING_HEADERS: Final = (
    b"forwarded",
    b"x-forwarded-",
)  # set by other proxies; this proxy sends none
_BARE_LINE_END: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n")  # a lone CR or LF
_FOLDED: Final = re.compile(rb"\n[ \t]")
_METHOD: Final = re.compile(rb"[A-Z][A-Z-]{0,31}")
_MAX_LENGTH_DIGITS: Final = 19  # upper bound of digits in a length
Headers = list[tuple[bytes, bytes]]


def check_head(head: bytes) -> None:
    """Rejects heads that two parsers could read differently. `head` includes the empty line. Raises
    ProxyRefusal (400, 501)."""
    if _BARE_LINE_END.search(head) or b"\0" in head:
        raise _invalid_head("a line does not end in CR LF")
    if _FOLDED.search(head):
        raise _invalid_head("a line is folded")
    first, *lines = head.rstrip(b"\r\n").split(b"\r\n")
    fields = [
        (name.lower(), value.strip(b" \t"))
        for name, _, value in (line.partition(b":") for line in lines)
    ]
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise _invalid_head("more than one header gives the body length")
    if lengths and not (lengths[0].isdigit() and len(lengths[0]) < _MAX_LENGTH_DIGITS):
        raise _invalid_head("its length is not a number")
    if codings and (codings[0].lower() != b"chunked" or not first.endswith(b" HTTP/1.1")):
        raise ProxyRefusal(
            501,
            "request",
            "cannot forward this request: the only supported transfer coding is chunked",
            is_denial=False,
        )
    if sum(name == b"host" for name, _ in fields) > 1:
        raise _invalid_head("duplicate Host header")
    if not first.endswith((b" HTTP/1.1", b" HTTP/1.0")):
        raise _invalid_head("its first line does not end in HTTP/1.1")
    if not _METHOD.fullmatch(first.partition(b" ")[0]):
        raise _invalid_head("its method must be upper-case letters")
    _check_overrides(first.split(b" ")[1], (name for name, _ in fields))


def _check_overrides(target: bytes, names: Iterable[bytes]) -> None:
    """Rejects headers and query parameters that override method, path or host, and spellings of
    hop-by-hop headers that only some servers recognize. Raises ProxyRefusal (400)."""
    for name in names:
        normalized = _normalize_name(name)
        if normalized in _OVERRIDES:
            raise _invalid_head(
                f"{name.decode('ascii', 'replace')} overrides its method, path or host"
            )
        if normalized in _HOP_BY_HOP and name != normalized:
            raise _invalid_head(
                f"some servers read {name.decode('ascii', 'replace')} as {normalized.decode()}"
            )
    if override := next(
        (
            name
            for name in _parameter_names(target)
            if _normalize_name(name) in _OVERRIDE_PARAMETERS
        ),
        b"",
    ):
        raise _invalid_head(
            f"{override.decode('ascii', 'replace')} in its query overrides its method, path or host"
        )


def _parameter_names(target: bytes) -> Iterable[bytes]:
    """Query parameter names as the most lenient servers read them: split at `;` too, stripped of
    blanks, up to a NUL."""
    query = _UNICODE_ESCAPE.sub(rb"%\1", target.partition(b"?")[2].lower())
    for pair in query.replace(b";", b"&").split(b"&"):
        name = unquote_to_bytes(pair.partition(b"=")[0].replace(b"+", b" "))
        yield name.strip(_BLANKS).partition(b"\0")[0].strip(_BLANKS).lower()


def _normalize_name(name: bytes) -> bytes:
    """Lower-case name with `-` for each separator: CGI, WSGI and PHP treat `_`, `.` and `-`
    alike."""
    return _NON_ALPHANUMERIC.sub(b"-", name)


def upstream_request(request: h11.Request, target: ProxyTarget) -> h11.Request:
    """The request for the target. `Host` is always the target's name."""
    headers: Headers = [
        (b"Host", target.host_header.encode()),
        *_end_to_end_headers(request.headers.raw_items()),
    ]
    headers += _length_headers(request.headers)
    headers.append((b"Connection", b"close"))
    return h11.Request(method=request.method, target=target.path.encode("ascii"), headers=headers)


def client_response(response: h11.Response, *, has_no_body: bool) -> h11.Response:
    """The response for the client. Without a length, h11 frames the body. With `has_no_body`, a
    length that is only informative (HEAD, 304) is kept."""
    headers = _end_to_end_headers(response.headers.raw_items())
    if not any(name == b"transfer-encoding" for name, _ in response.headers):
        headers += [
            (b"Content-Length", value)
            for name, value in response.headers
            if name == b"content-length"
        ][:1]
    elif has_no_body:
        headers = [row for row in headers if row[0].lower() != b"content-length"]
    return h11.Response(status_code=response.status_code, headers=headers, reason=response.reason)


def _end_to_end_headers(items: Iterable[tuple[bytes, bytes]]) -> Headers:
    rows = [(bytes(name), bytes(value)) for name, value in items]
    connection_options = b",".join(value for name, value in rows if name.lower() == b"connection")
    dropped = _HOP_BY_HOP | {option.strip().lower() for option in connection_options.split(b",")}
    remaining = [(name, value) for name, value in rows if name.lower() not in dropped]
    return [
        (name, value)
        for name, value in remaining
        if not _normalize_name(name.lower()).startswith(_FORWARDING_HEADERS)
    ]


def _length_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    rows = list(headers)
    for name, value in rows:
        if name == b"transfer-encoding":
            return [(b"Transfer-Encoding", b"chunked")]
        if name == b"content-length":
            return [(b"Content-Length", value)]
    return []


def _invalid_head(reason: str) -> ProxyRefusal:
    return ProxyRefusal(400, "request", f"cannot read this request: {reason}")
