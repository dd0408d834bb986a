"""Heads of requests and answers: judged as bytes first, then parsed, then written anew with one meaning only."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote_to_bytes

import h11

from agentbox.gateway.proxy.refusals import Sorry
from agentbox.gateway.proxy.target import Target

MAX_HEAD: Final = 32 << 10  # bytes
# Of one connection (RFC 9110 section 7.6.1), or the proxy's own business.
_HOP: Final = frozenset((
    b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer",
    b"transfer-encoding", b"upgrade", b"http2-settings", b"expect", b"host", b"content-length",
))  # fmt: skip
# By these some servers take another method, path or host than those that a rule decided on.
_OVERRIDES: Final = frozenset((
    b"x-http-method-override", b"x-http-method", b"x-method-override", b"x-original-method", b"x-original-url",
    b"x-original-uri", b"x-original-path", b"x-rewrite-url", b"x-rewrite-uri", b"x-override-url", b"x-http-path-override",
    b"x-envoy-original-path", b"x-original-host", b"x-host", b"x-http-host-override",
))  # fmt: skip
_OVERRIDING_PARAMETERS: Final = _OVERRIDES | {b"-method"}
_SIGN: Final = re.compile(rb"[^a-z0-9]")
_WIDE_ESCAPE: Final = re.compile(rb"%u00([0-9a-f]{2})")  # ASP's
_BLANK: Final = bytes(range(0x21))
_OF_A_PROXY: Final = (b"forwarded", b"x-forwarded-")  # what a proxy before the server says; this one says nothing
_LINE_END: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n")  # a CR or LF that stands alone
_FOLDED: Final = re.compile(rb"\n[ \t]")
_METHOD: Final = re.compile(rb"[A-Z][A-Z-]{0,31}")
_DIGITS: Final = 19  # of a length, fewer
Headers = list[tuple[bytes, bytes]]


def judge(head: bytes) -> None:
    """What two parsers may read in two ways is refused, though ours knows one. `head` is all up to the empty line. Raises
    Sorry (400, 501)."""
    if _LINE_END.search(head) or b"\0" in head:
        raise _odd("a line of it ends without CR LF")
    if _FOLDED.search(head):
        raise _odd("a line of it is folded")
    first, *lines = head.rstrip(b"\r\n").split(b"\r\n")
    fields = [(name.lower(), value.strip(b" \t")) for name, _, value in (line.partition(b":") for line in lines)]
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise _odd("more than one header says how long its body is")
    if lengths and not (lengths[0].isdigit() and len(lengths[0]) < _DIGITS):
        raise _odd("its length is no number")
    if codings and (codings[0].lower() != b"chunked" or not first.endswith(b" HTTP/1.1")):
        raise Sorry(
            501, "request", "cannot forward this request: of transfer codings only chunked is taken", counts=False
        )
    if sum(name == b"host" for name, _ in fields) > 1:
        raise _odd("it names its host twice")
    if not first.endswith((b" HTTP/1.1", b" HTTP/1.0")):
        raise _odd("its first line does not end in HTTP/1.1")
    if not _METHOD.fullmatch(first.partition(b" ")[0]):
        raise _odd("its method is no word in capitals")
    _check_overrides(first.split(b" ")[1], (name for name, _ in fields))


def _check_overrides(target: bytes, names: Iterable[bytes]) -> None:
    """Raises Sorry (400) for a header or a parameter of the query that names another method, path or host, and for a header
    of the connection in a spelling that only the server may take for it."""
    for name in names:
        dashed = _dashed(name)
        if dashed in _OVERRIDES:
            raise _odd(f"{name.decode('ascii', 'replace')} names another method, path or host than its first line")
        if dashed in _HOP and name != dashed:
            raise _odd(f"{name.decode('ascii', 'replace')} is {dashed.decode()} to some servers")
    if found := next((name for name in _parameters(target) if _dashed(name) in _OVERRIDING_PARAMETERS), b""):
        raise _odd(f"{found.decode('ascii', 'replace')} in its query names another method, path or host")


def _parameters(target: bytes) -> Iterable[bytes]:
    """Names in the query as the most lenient server reads them: cut at `;` too, without blanks around, up to a NUL."""
    query = _WIDE_ESCAPE.sub(rb"%\1", target.partition(b"?")[2].lower())
    for part in query.replace(b";", b"&").split(b"&"):
        name = unquote_to_bytes(part.partition(b"=")[0].replace(b"+", b" "))
        yield name.strip(_BLANK).partition(b"\0")[0].strip(_BLANK).lower()


def _dashed(name: bytes) -> bytes:
    """CGI, WSGI and PHP do not tell `_`, `.` and `-` apart."""
    return _SIGN.sub(b"-", name)


def onward(request: h11.Request, target: Target) -> h11.Request:
    """The request as it goes to the target. `Host` is the target's name, whatever the client wrote there."""
    headers: Headers = [(b"Host", target.host_header.encode()), *_end_to_end(request.headers.raw_items())]
    headers += _length(request.headers)
    headers.append((b"Connection", b"close"))
    return h11.Request(method=request.method, target=target.path.encode("ascii"), headers=headers)


def back(response: h11.Response, *, bodiless: bool) -> h11.Response:
    """The answer as it goes to the client. Without a length h11 frames the body itself. `bodiless`: a length that is only
    told (HEAD, 304) stays."""
    headers = _end_to_end(response.headers.raw_items())
    if not any(name == b"transfer-encoding" for name, _ in response.headers):
        headers += [(b"Content-Length", value) for name, value in response.headers if name == b"content-length"][:1]
    elif bodiless:
        headers = [row for row in headers if row[0].lower() != b"content-length"]
    return h11.Response(status_code=response.status_code, headers=headers, reason=response.reason)


def _end_to_end(items: Iterable[tuple[bytes, bytes]]) -> Headers:
    rows = [(bytes(name), bytes(value)) for name, value in items]
    named = b",".join(value for name, value in rows if name.lower() == b"connection")
    dropped = _HOP | {word.strip().lower() for word in named.split(b",")}
    kept = [(name, value) for name, value in rows if name.lower() not in dropped]
    return [(name, value) for name, value in kept if not _dashed(name.lower()).startswith(_OF_A_PROXY)]


def _length(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    rows = list(headers)
    for name, value in rows:
        if name == b"transfer-encoding":
            return [(b"Transfer-Encoding", b"chunked")]
        if name == b"content-length":
            return [(b"Content-Length", value)]
    return []


def _odd(why: str) -> Sorry:
    return Sorry(400, "request", f"cannot read this request: {why}")
