"""A connection to a target, made to an address that was looked at."""

import asyncio
from collections.abc import Sequence

from agentbox.gateway.proxy.addresses import Address
from agentbox.gateway.proxy.egress_config import Reach
from agentbox.gateway.proxy.refusals import Sorry
from agentbox.gateway.proxy.resolve import Resolver, addresses
from agentbox.gateway.proxy.target import Target
from agentbox.gateway.proxy.wire import Wire


async def dial(target: Target, reach: Reach, resolver: Resolver) -> Wire:
    """Within `egress.connect_timeout_seconds` for all of it. Raises Sorry (403, 502, 504)."""
    try:
        async with asyncio.timeout(reach.connect_seconds):
            found = await addresses(target, resolver, reach.private)
            return await _first(target, found)
    except TimeoutError:
        seconds = f"{reach.connect_seconds:g} s (egress.connect_timeout_seconds)"
        raise Sorry(
            504, "connect", f"cannot reach {target.value}: no connection within {seconds}", counts=False
        ) from None


async def _first(target: Target, found: Sequence[Address]) -> Wire:
    """The first that takes the connection, in the resolver's order."""
    said = ""
    for address in found:
        try:
            _, wire = await asyncio.get_running_loop().create_connection(Wire, str(address), target.port)
        except OSError as error:
            said = error.strerror or str(error)
        else:
            return wire
    raise Sorry(502, "connect", f"cannot reach {target.value}: {said}", counts=False)
