"""A tunnel through the proxy of the operator's network, by CONNECT with the name of the target:
that proxy may know rules by name, and shows a certificate for it."""

import asyncio
import base64
from typing import Final
from urllib.parse import urlsplit

from agentbox.gateway.proxy.http_head import MAX_HEAD
from agentbox.gateway.proxy.refusals import ProxyRefusal
from agentbox.gateway.proxy.stream import ProxyStream
from agentbox.gateway.proxy.target import ProxyTarget
from agentbox.policy.outgoing import Outgoing

_HEAD_END: Final = b"\r\n\r\n"


async def connect_by_proxy(target: ProxyTarget, outgoing: Outgoing) -> ProxyStream:
    """Raises ProxyRefusal (502). The caller bounds the time."""
    parts = urlsplit(outgoing.proxy)
    is_tls, host = parts.scheme == "https", parts.hostname or ""
    port = parts.port or (443 if is_tls else 80)
    name = f"{host}:{port}"
    try:
        _, stream = await asyncio.get_running_loop().create_connection(
            ProxyStream, host, port, ssl=outgoing.context() if is_tls else None
        )
    except OSError as error:
        raise _unreachable(target, f"the proxy {name} cannot be reached: {error}") from error
    try:
        await stream.write(_request(target, outgoing.account))
        if (status := await _read_status(stream)) != 200:
            raise _unreachable(target, _reason(name, status, target))
    except ConnectionResetError as error:
        raise _unreachable(target, _reason(name, 0, target)) from error
    except BaseException:
        stream.abort()
        raise
    return stream


def _request(target: ProxyTarget, account: str) -> bytes:
    head = f"CONNECT {target.value} HTTP/1.1\r\nHost: {target.value}\r\n"
    if account:
        head += f"Proxy-Authorization: Basic {base64.b64encode(account.encode()).decode()}\r\n"
    return f"{head}\r\n".encode("ascii")


async def _read_status(stream: ProxyStream) -> int:
    """0 if there is no HTTP response. What follows the head stays unread."""
    received = b""
    while (end := received.find(_HEAD_END)) < 0:
        if len(received) > MAX_HEAD or not (data := await stream.read()):
            return 0
        received += data
    if rest := received[end + len(_HEAD_END) :]:
        stream.unread(rest)
    words = received.split(b"\r\n", 1)[0].split(b" ", 2)
    is_http = len(words) > 1 and words[0].startswith(b"HTTP/1.") and words[1].isdigit()
    return int(words[1]) if is_http and len(words[1]) == 3 else 0


def _reason(name: str, status: int, target: ProxyTarget) -> str:
    if status == 407:
        return f"the proxy {name} asks for another user and password (407)"
    return f"the proxy {name} does not connect to it ({status or 'no response'})"


def _unreachable(target: ProxyTarget, reason: str) -> ProxyRefusal:
    return ProxyRefusal(502, "connect", f"cannot reach {target.value}: {reason}", is_denial=False)
