"""From a name to the addresses that a connection may be made to. Each is looked at; the connection goes to that very one."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from agentbox.gateway.proxy.addresses import Address, exempt, kind, plain
from agentbox.gateway.proxy.refusals import Sorry
from agentbox.gateway.proxy.target import Target
from agentbox.policy.patterns.hosts import HostPattern

Resolver = Callable[[str], Awaitable[Sequence[str]]]
"""Addresses of a name, best first. Raises OSError (socket.gaierror) when there are none."""

_LOOKUPS: Final = 16  # at once; a slow name server holds up no more than that
_MOST: Final = 8  # addresses of one name that are looked at


def system_resolver() -> Resolver:
    """The host's own, in threads of its own."""
    threads = ThreadPoolExecutor(_LOOKUPS, "resolve")

    def look(name: str) -> list[str]:
        rows = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        return list(dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows))

    async def resolve(name: str) -> Sequence[str]:
        return await asyncio.get_running_loop().run_in_executor(threads, look, name)

    return resolve


async def addresses(target: Target, resolver: Resolver, private: Sequence[HostPattern]) -> list[Address]:
    """Those of a target that may be connected to. One that may not refuses them all: a name that leads both outside and
    inside is no accident. Raises Sorry."""
    if target.address is not None:
        found: list[Address] = [target.address]
    else:
        try:
            found = [ipaddress.ip_address(text) for text in (await resolver(target.host))[:_MOST]]
        except OSError as error:
            raise Sorry(
                502, "resolve", f"cannot find {target.host}: {error.strerror or error}", counts=False
            ) from error
    for address in found:
        if (why := kind(address)) and not exempt(target, address, private):
            raise Sorry(
                403, f"address:{why}",
                f"cannot reach {target.value}: it leads to a {why} address. An operator may name it in egress.allow_private.",
            )  # fmt: skip
    if not found:
        raise Sorry(502, "resolve", f"cannot find {target.host}: it has no address", counts=False)
    return [plain(address) if address.version == 6 and _mapped(address) else address for address in found]


def _mapped(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
