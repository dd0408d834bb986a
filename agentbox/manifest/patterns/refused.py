"""The address ranges that no agent reaches through the proxy, whatever is allowed (RFC 6890 and its registries)."""

import ipaddress
from typing import Final

from agentbox.manifest.patterns.hosts import Network

REFUSED: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network, unspecified
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "::/128",  # unspecified
        "::1/128",  # loopback
        "64:ff9b:1::/48",  # NAT64 of a local operator
        "fc00::/7",  # private
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local, given up
        "ff00::/8",  # multicast
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LOW_32: Final = (1 << 32) - 1


def is_refused(network: Network) -> bool:
    """True when all of an address or range lies in one that is refused; mapped and NAT64 forms count as IPv4."""
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_NAT64):
        inner = ipaddress.IPv4Address(int(network.network_address) & _LOW_32)
        return is_refused(ipaddress.IPv4Network((inner, network.prefixlen - 96)))
    if isinstance(network, ipaddress.IPv4Network):
        return any(isinstance(one, ipaddress.IPv4Network) and network.subnet_of(one) for one in REFUSED)
    return any(isinstance(one, ipaddress.IPv6Network) and network.subnet_of(one) for one in REFUSED)
