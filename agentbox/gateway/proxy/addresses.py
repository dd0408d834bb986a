"""Which addresses the proxy does not connect to, whatever is allowed, and what an operator exempts from that."""

import ipaddress
from collections.abc import Iterable
from typing import Final, TypeAlias

from agentbox.gateway.proxy.target import Target
from agentbox.policy.patterns.hosts import HostPattern
from agentbox.policy.patterns.refused import CARRIERS, is_isatap, is_refused

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052
# Public by its number, and the machine's platform to the machine itself: one cloud serves keys and settings there.
_PLATFORM: Final = ipaddress.IPv4Address("168.63.129.16")
_CARRIER_GRADE: Final = ipaddress.IPv4Network("100.64.0.0/10")


def plain(address: Address) -> Address:
    """What is meant: a mapped or NAT64 form is the IPv4 address in it."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def kind(address: Address) -> str:
    """Why an address is refused, one of a closed set of words; "" for one that anybody may reach."""
    meant = plain(address)
    if meant == _PLATFORM:
        return "metadata"
    if not is_refused(ipaddress.ip_network(meant)) and meant.is_global:
        return ""
    if meant.is_loopback:
        return "loopback"
    if meant.is_unspecified:
        return "unspecified"
    if meant.is_link_local:
        return "link-local"
    if meant.is_multicast:
        return "multicast"
    if isinstance(meant, ipaddress.IPv6Address) and _carries_another(meant):
        return "transition"
    if isinstance(meant, ipaddress.IPv4Address) and meant in _CARRIER_GRADE:
        return "carrier"
    return "private" if _private(meant) else "reserved"


def _carries_another(address: ipaddress.IPv6Address) -> bool:
    return any(address in network for network in CARRIERS) or is_isatap(ipaddress.IPv6Network(address))


def _private(address: Address) -> bool:
    ranges = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
    return any(address in ipaddress.ip_network(text) for text in ranges)


def exempt(target: Target, address: Address, patterns: Iterable[HostPattern]) -> bool:
    """Whether `egress.allow_private` names the target or the address. A name exempts what an operator has behind one; what
    no name should lead to (metadata, multicast and the like) must be written as an address."""
    meant = Target(str(plain(address)), target.port).value
    named = kind(address) in ("private", "carrier", "loopback")
    return any(one.matches(meant) or (named and one.network is None and one.matches(target.value)) for one in patterns)
