"""Connects to a target at a checked address, or through the proxy of the operator's network."""

import asyncio
from collections.abc import Sequence

from agentbox.gateway.proxy.blocked_addresses import Address
from agentbox.gateway.proxy.egress_config import EgressConfig
from agentbox.gateway.proxy.refusals import ProxyRefusal
from agentbox.gateway.proxy.resolve import Resolver, check_exact_name, resolve_target
from agentbox.gateway.proxy.stream import ProxyStream
from agentbox.gateway.proxy.target import ProxyTarget
from agentbox.gateway.proxy.upstream_proxy import connect_by_proxy


async def dial(target: ProxyTarget, egress: EgressConfig, resolver: Resolver) -> ProxyStream:
    """Resolves and connects within `egress.connect_timeout_seconds`. Raises ProxyRefusal (403, 502,
    504)."""
    try:
        async with asyncio.timeout(egress.connect_seconds):
            is_direct = egress.outgoing.is_direct(target.host, target.port)
            if not is_direct and egress.outgoing.resolve == "proxy":
                check_exact_name(target, egress.allow)
                return await connect_by_proxy(target, egress.outgoing)
            candidates = await resolve_target(target, resolver, egress.allow_private)
            if not is_direct:
                return await connect_by_proxy(target, egress.outgoing)
            return await _connect_first(target, candidates)
    except TimeoutError:
        seconds = f"{egress.connect_seconds:g} s (egress.connect_timeout_seconds)"
        raise ProxyRefusal(
            504,
            "connect",
            f"cannot reach {target.value}: no connection within {seconds}",
            is_denial=False,
        ) from None


async def _connect_first(target: ProxyTarget, candidates: Sequence[Address]) -> ProxyStream:
    """Connects to the first address that accepts, in the resolver's order."""
    failure = ""
    for address in candidates:
        try:
            _, stream = await asyncio.get_running_loop().create_connection(
                ProxyStream, str(address), target.port
            )
        except OSError as error:
            failure = error.strerror or str(error)
        else:
            return stream
    raise ProxyRefusal(502, "connect", f"cannot reach {target.value}: {failure}", is_denial=False)
