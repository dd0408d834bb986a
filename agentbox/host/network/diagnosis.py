"""Why a server could not be reached over TLS or through a proxy: it is tried once more, and looked
at. Whatever tool failed before, the sentence is the same. Standard library only.
"""

import base64
import http.client
import socket
import ssl
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

_SECONDS: Final = 10.0
_MAX_HEAD: Final = 1 << 14
_EXPIRED, _NOT_YET, _OTHER_NAME = 10, 9, 62  # X509_V_ERR_... of OpenSSL
_COMMON_NAME: Final = b"\x06\x03\x55\x04\x03"  # DER of 2.5.4.3; the issuer comes before the subject
_SHORT_LENGTH: Final = 128
_TRUST: Final = "Set AGENTBOX_CA_BUNDLE or [network] ca_bundle."
_ACCOUNT: Final = (
    "Give user and password: in the address of HTTPS_PROXY, or name their variable in "
    "[network] proxy_env."
)
_GONE: Final = "Start it, or correct HTTPS_PROXY or [network] proxy."


class Cause(NamedTuple):
    """Why, and what to do about it."""

    why: str
    hint: str


class _ProxyProblem(Exception):
    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.why)
        self.cause = cause


def diagnose(url: str, *, bundle: str = "", proxy: str = "") -> Cause | None:
    """None if neither a certificate nor a proxy is why `url` could not be read.

    `bundle` "": what this Python trusts. `proxy` "": the one that the environment names.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    chosen = proxy or _proxy_of_environment(parts)
    try:
        if parts.scheme == "http":
            return _ask_proxy(parts, urlsplit(chosen)) if chosen else None
        return _look_at_certificate(parts, chosen, bundle)
    except _ProxyProblem as problem:
        return problem.cause
    except (OSError, ValueError, http.client.HTTPException):
        return None


def proxy_name(proxy: SplitResult) -> str:
    """Host and port, without user and password."""
    return f"{proxy.hostname}:{proxy.port or (443 if proxy.scheme == 'https' else 80)}"


def _proxy_of_environment(parts: SplitResult) -> str:
    if proxy_bypass(parts.hostname or ""):
        return ""
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all") or ""


def _look_at_certificate(parts: SplitResult, proxy: str, bundle: str) -> Cause | None:
    host, port = parts.hostname or "", parts.port or 443
    context = ssl.create_default_context(cafile=bundle or None)
    try:
        with (
            _connect(host, port, proxy) as link,
            context.wrap_socket(link, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        reason = error.verify_code
    where = f"{host}:{parts.port}" if parts.port else host
    issuer = f'(issuer "{_issuer(_shown(host, port, proxy)) or "unknown"}")'
    if reason in (_EXPIRED, _NOT_YET):
        state = "has expired" if reason == _EXPIRED else "is not valid yet"
        return Cause(
            f"the certificate that {where} showed {state} {issuer}",
            "Have it renewed, or correct this machine's clock.",
        )
    if reason == _OTHER_NAME:
        return Cause(
            f"the certificate that {where} showed is for another name {issuer}",
            "Correct the address, or have the certificate renewed.",
        )
    return Cause(
        f"the certificate that {where} showed is not trusted here {issuer}: a proxy that reads "
        "TLS?",
        _TRUST,
    )


def _shown(host: str, port: int, proxy: str) -> bytes:
    """The certificate, read without trusting it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        _connect(host, port, proxy) as link,
        context.wrap_socket(link, server_hostname=host) as stream,
    ):
        return stream.getpeercert(binary_form=True) or b""


def _connect(host: str, port: int, proxy: str) -> socket.socket:
    """Directly, or by CONNECT with the name. Raises OSError, _ProxyProblem."""
    if not proxy:
        return socket.create_connection((host, port), timeout=_SECONDS)
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    link = _dial_proxy(parts)
    try:
        authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        head = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{_account(parts)}\r\n"
        _check_status(_status(link, head), parts, host)
    except BaseException:
        link.close()
        raise
    return link


def _ask_proxy(target: SplitResult, proxy: SplitResult) -> Cause | None:
    with _dial_proxy(proxy) as link:
        head = f"HEAD {target.geturl()} HTTP/1.1\r\nHost: {target.netloc}\r\n{_account(proxy)}"
        status = _status(link, f"{head}Connection: close\r\n\r\n")
    if status == 407:
        _check_status(status, proxy, target.hostname or "")
    return None


def _dial_proxy(proxy: SplitResult) -> socket.socket:
    name = proxy_name(proxy)
    try:
        link = socket.create_connection(
            (proxy.hostname or "", proxy.port or (443 if proxy.scheme == "https" else 80)),
            timeout=_SECONDS,
        )
    except OSError as error:
        raise _ProxyProblem(
            Cause(f"the proxy {name} cannot be reached: {error.strerror or error}", _GONE)
        ) from error
    if proxy.scheme == "https":
        return ssl.create_default_context().wrap_socket(link, server_hostname=proxy.hostname)
    return link


def _account(proxy: SplitResult) -> str:
    if proxy.username is None:
        return ""
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"


def _status(link: socket.socket, head: str) -> int:
    """Byte by byte: what follows the head of an answer belongs to the tunnel."""
    link.sendall(head.encode("latin-1"))
    answer = b""
    while not answer.endswith(b"\r\n\r\n") and len(answer) < _MAX_HEAD:
        if not (byte := link.recv(1)):
            break
        answer += byte
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) > 1 and words[1][:3].isdigit() else 0


def _check_status(status: int, proxy: SplitResult, host: str) -> None:
    name = proxy_name(proxy)
    if status == 407:
        wants = "refuses this user and password" if proxy.username else "asks for a user"
        raise _ProxyProblem(Cause(f"the proxy {name} {wants} (407)", _ACCOUNT))
    if status != 200:
        raise _ProxyProblem(
            Cause(
                f"the proxy {name} does not connect to {host} "
                f"({status or 'it closed the connection'})",
                "Ask who runs it to allow this host.",
            )
        )


def _issuer(der: bytes) -> str:
    offset = der.find(_COMMON_NAME) + len(_COMMON_NAME)
    if offset < len(_COMMON_NAME) or len(der) < offset + 2 or der[offset + 1] >= _SHORT_LENGTH:
        return ""
    text = der[offset + 2 : offset + 2 + der[offset + 1]].decode("utf-8", "replace")
    return "".join(character if character.isprintable() else "?" for character in text)
