"""Addresses that the proxy never connects to, and the exemptions an operator can set."""

import ipaddress
from collections.abc import Iterable
from typing import Final, TypeAlias

from agentbox.gateway.proxy.target import ProxyTarget
from agentbox.policy.patterns.blocked_ranges import CARRIERS, is_blocked, is_isatap
from agentbox.policy.patterns.hosts import HostPattern

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052
# Azure's WireServer: a public address that serves platform keys and settings to the machine.
_PLATFORM: Final = ipaddress.IPv4Address("168.63.129.16")
_CARRIER_GRADE: Final = ipaddress.IPv4Network("100.64.0.0/10")


def canonical_address(address: Address) -> Address:
    """Unwraps IPv4-mapped and NAT64 addresses to IPv4."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def forbidden_kind(address: Address) -> str:
    """The category of a forbidden address; "" for a public one."""
    canonical = canonical_address(address)
    if canonical == _PLATFORM:
        return "metadata"
    if not is_blocked(ipaddress.ip_network(canonical)) and canonical.is_global:
        return ""
    if canonical.is_loopback:
        return "loopback"
    if canonical.is_unspecified:
        return "unspecified"
    if canonical.is_link_local:
        return "link-local"
    if canonical.is_multicast:
        return "multicast"
    if isinstance(canonical, ipaddress.IPv6Address) and _is_transition(canonical):
        return "transition"
    if isinstance(canonical, ipaddress.IPv4Address) and canonical in _CARRIER_GRADE:
        return "carrier"
    return "private" if _is_private(canonical) else "reserved"


def _is_transition(address: ipaddress.IPv6Address) -> bool:
    return any(address in network for network in CARRIERS) or is_isatap(
        ipaddress.IPv6Network(address)
    )


def _is_private(address: Address) -> bool:
    ranges = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
    return any(address in ipaddress.ip_network(text) for text in ranges)


def is_exempt(target: ProxyTarget, address: Address, patterns: Iterable[HostPattern]) -> bool:
    """Whether `egress.allow_private` contains the target or the address. A host name exempts
    private, carrier and loopback addresses only; all others must be listed as addresses."""
    canonical = ProxyTarget(str(canonical_address(address)), target.port).value
    name_exempts = forbidden_kind(address) in ("private", "carrier", "loopback")
    return any(
        pattern.matches(canonical)
        or (name_exempts and pattern.network is None and pattern.matches(target.value))
        for pattern in patterns
    )
