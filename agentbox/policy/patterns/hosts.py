"""Network targets (scope net). connect: `example.com`, `*.example.com:8443`, `10.0.0.0/8:*`,
`$EGRESS`, `*`; tcp: a port.
"""

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from agentbox.policy.patterns.base import PatternError

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_PORT: Final = 443
EGRESS: Final = "$EGRESS"
FORM: Final = (
    "host, *.host, an IP address or a CIDR range, each with :port or :* (absent = 443), "
    "or $EGRESS, or *"
)
TCP_FORM: Final = "a port number from 1 to 65535"
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_BRACKETED: Final = re.compile(r"\[([^\]]*)\](/[0-9]+)?(?::(.*))?")
_MAX_LENGTH: Final = 253


@dataclass(frozen=True)
class HostPattern:
    """Exactly one of `name` (lower case; `*.x` = below x, `*` = any host or address, `$EGRESS`) and
    `network` is set. `port` None = any. A name never matches an address, nor an address a name:
    names are not resolved here.
    """

    name: str
    network: Network | None
    port: int | None

    @classmethod
    def parse(cls, text: str) -> "HostPattern":
        """Raises PatternError."""
        if text == EGRESS:
            return cls(EGRESS, None, None)
        host, port = _split(text)
        number = _port(port, text) if port is not None else DEFAULT_PORT
        network = _network(host)
        if network is not None:
            return cls("", network, number)
        name = host.lower()
        if name != "*" and not _is_name(name.removeprefix("*.")):
            raise PatternError(text, "is not a host name, address or range", FORM)
        return cls(name, None, number)

    def __str__(self) -> str:
        if self.name == EGRESS:
            return EGRESS
        host = self.name or self._address()
        return (
            host
            if self.port == DEFAULT_PORT
            else f"{host}:{'*' if self.port is None else self.port}"
        )

    @property
    def address_and_port(self) -> str:
        """With an explicit port, as in `egress.allow_private`."""
        host = self.name or self._address()
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"{host}:{'*' if self.port is None else self.port}"

    def _address(self) -> str:
        is_single = self.network is not None and self.network.num_addresses == 1
        text = str(self.network.network_address if is_single and self.network else self.network)
        return f"[{text}]" if ":" in text and self.port != DEFAULT_PORT else text

    @property
    def variable(self) -> str:
        """`$EGRESS`, or ""."""
        return self.name if self.name == EGRESS else ""

    def matches(self, value: str) -> bool:
        """`value` is `host:port` or `[address]:port`, the host in lower case without a final dot;
        or `$EGRESS`.
        """
        try:
            host, port = split_address(value)
        except ValueError:
            return value == EGRESS and self.covers(HostPattern.parse(EGRESS))
        if self.port not in (None, port) or self.variable:
            return False
        network = _network(host)
        if network is not None:
            return self.name == "*" or (
                self.network is not None and _is_subnet(network, self.network)
            )
        return _name_covers(self.name, host)

    def covers(self, other: "HostPattern") -> bool:
        """Also compares ports."""
        if self.variable or other.variable:
            return self.name == other.name or (self.name == "*" and self.port is None)
        return self.port in (None, other.port) and self.covers_host(other)

    def covers_host(self, other: "HostPattern") -> bool:
        """The same, ignoring ports."""
        if self.name == "*":
            return True
        if self.network is not None and other.network is not None:
            return _is_subnet(other.network, self.network)
        return bool(other.name) and _name_covers(self.name, other.name)

    def overlaps(self, other: "HostPattern") -> bool:
        """`$EGRESS` may contain anything."""
        if self.variable or other.variable:
            return True
        if None not in (self.port, other.port) and self.port != other.port:
            return False
        return self.covers_host(other) or other.covers_host(
            self
        )  # sets of hosts are nested or disjoint


@dataclass(frozen=True)
class PortPattern:
    """One TCP port of any address."""

    port: int

    @classmethod
    def parse(cls, text: str) -> "PortPattern":
        """Raises PatternError."""
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
            raise PatternError(text, "is not a port", TCP_FORM)
        return cls(int(text))

    def __str__(self) -> str:
        return str(self.port)

    @property
    def variable(self) -> str:
        """Always ""."""
        return ""

    def matches(self, value: str) -> bool:
        """`value` is the port in decimal."""
        return value == str(self.port)

    def covers(self, other: "PortPattern") -> bool:
        """The same port."""
        return self == other

    overlaps = covers


def split_address(value: str) -> tuple[str, int]:
    """`host:port` or `[address]:port` -> host and port. Raises ValueError unless in normal form."""
    host, port = _split(value)
    if port is None or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ValueError(f"no port in {value}")
    if host != host.lower() or not (_is_name(host) or _is_address(host)):
        raise ValueError(f"no host name or address in {value}")
    return host, int(port)


def _split(text: str) -> tuple[str, str | None]:
    """Host, and the text after its colon; an IPv6 address with a port is in brackets."""
    if bracketed := _BRACKETED.fullmatch(text):
        return bracketed[1] + (bracketed[2] or ""), bracketed[3]
    if text.count(":") > 1:
        return text, None
    host, colon, port = text.partition(":")
    return host, port if colon else None


def _port(port: str, text: str) -> int | None:
    if port == "*":
        return None
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise PatternError(text, "has no port from 1 to 65535 after its colon", FORM)
    return int(port)


@lru_cache(maxsize=4096)  # bounded, since agents choose the values
def _network(host: str) -> Network | None:
    """An address or range; IPv4-mapped IPv6 addresses count as IPv4."""
    try:
        network: Network = ipaddress.ip_network(host)
    except ValueError:
        return None
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= 96:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return ipaddress.IPv4Network((mapped, network.prefixlen - 96))
    return network


def _is_address(host: str) -> bool:
    network = _network(host)
    return network is not None and "/" not in host


def _is_name(name: str) -> bool:
    """A host name (RFC 1123), also with underscores; the last label is not numeric, since resolvers
    treat that as an address.
    """
    labels = name.split(".")
    is_valid = len(name) <= _MAX_LENGTH and all(_LABEL.fullmatch(label) for label in labels)
    return is_valid and not _NUMERIC.fullmatch(labels[-1])


def _is_subnet(inner: Network, outer: Network) -> bool:
    if isinstance(inner, ipaddress.IPv4Network):
        return isinstance(outer, ipaddress.IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, ipaddress.IPv6Network) and inner.subnet_of(outer)


def _name_covers(outer: str, inner: str) -> bool:
    if outer == "*":
        return True
    return outer == inner or (
        outer.startswith("*.") and inner.endswith(outer[1:]) and inner != outer[1:]
    )


def url_target(url: str) -> str:
    """The pattern of the host and port of an http or https URL."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
