"""Resolves a target to addresses that are allowed. Connections go to the checked address itself."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from agentbox.gateway.proxy.blocked_addresses import (
    Address,
    canonical_address,
    forbidden_kind,
    is_exempt,
)
from agentbox.gateway.proxy.refusals import ProxyRefusal
from agentbox.gateway.proxy.target import ProxyTarget
from agentbox.policy.patterns.hosts import HostPattern

Resolver = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the addresses of a name, best first. Raises OSError (socket.gaierror) if there are
none."""

_MAX_LOOKUPS: Final = 16  # concurrent; limits the effect of a slow name server
_MAX_ADDRESSES: Final = 8  # checked addresses per name


def system_resolver() -> Resolver:
    """The system resolver on its own thread pool."""
    threads = ThreadPoolExecutor(_MAX_LOOKUPS, "resolve")

    def look_up(name: str) -> list[str]:
        rows = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        return list(dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows))

    async def resolve(name: str) -> Sequence[str]:
        return await asyncio.get_running_loop().run_in_executor(threads, look_up, name)

    return resolve


async def resolve_target(
    target: ProxyTarget, resolver: Resolver, allow_private: Sequence[HostPattern]
) -> list[Address]:
    """The addresses of a target. A single forbidden address rejects all, since a name that resolves
    both to public and to private addresses is suspicious. Raises ProxyRefusal."""
    if target.address is not None:
        candidates: list[Address] = [target.address]
    else:
        try:
            candidates = [
                ipaddress.ip_address(text)
                for text in (await resolver(target.host))[:_MAX_ADDRESSES]
            ]
        except OSError as error:
            raise ProxyRefusal(
                502,
                "resolve",
                f"cannot resolve {target.host}: {error.strerror or error}",
                is_denial=False,
            ) from error
    for address in candidates:
        if (reason := forbidden_kind(address)) and not is_exempt(target, address, allow_private):
            raise ProxyRefusal(
                403,
                f"address:{reason}",
                f"cannot reach {target.value}: it resolves to a {reason} address. An operator "
                "can allow it in egress.allow_private.",
            )
    if not candidates:
        raise ProxyRefusal(
            502, "resolve", f"cannot resolve {target.host}: it has no address", is_denial=False
        )
    return [
        canonical_address(address) if address.version == 6 and _is_mapped(address) else address
        for address in candidates
    ]


def check_exact_name(target: ProxyTarget, allow: Sequence[HostPattern]) -> None:
    """For names that only the operator's proxy can look up: what they lead to is unknown here.
    Raises ProxyRefusal for an address, and for a name that `egress.allow` does not list as such."""
    if target.address is not None:
        reason = "network.resolve is proxy, and it is an address. Use its name."
    elif any(
        pattern.name == target.host and pattern.port in (None, target.port) for pattern in allow
    ):
        return
    else:
        reason = (
            "network.resolve is proxy, and egress.allow does not list exactly this name. An "
            "operator can add it there."
        )
    raise ProxyRefusal(403, "address:unresolved", f"cannot reach {target.value}: {reason}")


def _is_mapped(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
