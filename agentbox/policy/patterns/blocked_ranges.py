"""Address ranges that the proxy always blocks, whatever is allowed (RFC 6890 and its
registries).
"""

import ipaddress
from typing import Final

from agentbox.policy.patterns.hosts import Network

# IPv6 forms that embed an IPv4 address, which a check of the IPv6 address alone would miss.
CARRIERS: Final = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "::/96",  # IPv4-compatible (RFC 4291 section 2.5.5.1)
        "::ffff:0:0:0/96",  # IPv4-translated, SIIT (RFC 2765 section 2.1)
        "64:ff9b:1::/48",  # NAT64 of a local operator (RFC 8215)
        "2001::/32",  # Teredo (RFC 4380)
        "2002::/16",  # 6to4 (RFC 3056)
    )
)
BLOCKED: Final[tuple[Network, ...]] = (
    *CARRIERS,
    *(
        ipaddress.ip_network(text)
        for text in (
            "0.0.0.0/8",  # this network, unspecified
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # carrier
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, metadata
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
            "2001::/23",  # protocol assignments
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
            "::/3",  # all but 2000::/3: loopback, discard-only, segment routing, not assigned
            "4000::/2",  # not assigned
            "8000::/1",  # private, link-local, site-local, multicast, not assigned
        )
    ),
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LOW_32: Final = (1 << 32) - 1
_ISATAP: Final = 0x5EFE  # upper half of an interface identifier (RFC 5214 section 6.1)
_UNIVERSAL_BIT: Final = (
    0x02000000  # in that half, set if the IPv4 address in the lower half is unique
)


def is_isatap(network: ipaddress.IPv6Network) -> bool:
    """True if all addresses of the network end in an IPv4 address that ISATAP routers tunnel to,
    with any prefix.
    """
    upper = int(network.network_address) >> 32 & 0xFFFFFFFF
    return network.prefixlen >= 96 and upper & ~_UNIVERSAL_BIT == _ISATAP


def is_blocked(network: Network) -> bool:
    """True if the whole address or range is inside a blocked one; mapped and NAT64 forms count as
    IPv4.
    """
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_NAT64):
        inner = ipaddress.IPv4Address(int(network.network_address) & _LOW_32)
        return is_blocked(ipaddress.IPv4Network((inner, network.prefixlen - 96)))
    if isinstance(network, ipaddress.IPv4Network):
        return any(
            isinstance(blocked, ipaddress.IPv4Network) and network.subnet_of(blocked)
            for blocked in BLOCKED
        )
    is_listed = any(
        isinstance(blocked, ipaddress.IPv6Network) and network.subnet_of(blocked)
        for blocked in BLOCKED
    )
    return is_listed or is_isatap(network)
