"""Where a request wants to go, in the one form that rights are decided in and connections are made from."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from agentbox.gateway.proxy.refusals import Sorry
from agentbox.policy.patterns.hosts import split_address

_PORT: Final = re.compile(r":([0-9]{1,5})")
_NUMERIC: Final = re.compile(r"([0-9]+|0x[0-9a-f]*)")  # a last label that resolvers read as an address
_SAID: Final = 80  # characters of a target that an answer repeats


@dataclass(frozen=True)
class Target:
    """`host` in lower case without a dot at its end, or an address in its shortest form; `path` with its query."""

    host: str
    port: int
    path: str = ""

    @property
    def value(self) -> str:
        """`host:port`, an IPv6 address in brackets: the form of `Policy.decide`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        """`Host` of plain HTTP: the port only where it is not 80 (RFC 9110 section 4.2.3)."""
        return self.value.removesuffix(":80") if self.port == 80 else self.value

    @property
    def address(self) -> "ipaddress.IPv4Address | ipaddress.IPv6Address | None":
        """Where `host` is an address."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None


def of_connect(text: str) -> Target:
    """The authority of a CONNECT. Raises Sorry (400)."""
    host, port = _authority(text)
    if port is None:
        raise _unclear(text, "a tunnel's target is host:port")
    return _target(host, port, "", text)


def of_url(text: str) -> Target:
    """An absolute `http` URL. Raises Sorry (400)."""
    scheme, mark, rest = text.partition("://")
    if not mark or scheme.lower() != "http":
        raise _unclear(text, "only http:// URLs are taken; https goes by CONNECT")
    cut = min((rest.find(sign) for sign in "/?" if sign in rest), default=len(rest))
    authority, path = rest[:cut], rest[cut:]
    if "@" in authority:
        raise _unclear(text, "no name or password goes before the host")
    if "#" in path or not path.isprintable() or " " in path:
        raise _unclear(text, "its path has a character that belongs escaped")
    host, port = _authority(authority)
    return _target(host, 80 if port is None else port, path if path.startswith("/") else "/" + path, text)


def _authority(text: str) -> tuple[str, int | None]:
    bracketed = text.startswith("[")
    if bracketed:
        host, _, port = text[1:].partition("]")
    else:
        host, colon, port = text.rpartition(":") if ":" in text else (text, "", "")
        port = colon + port
    if bracketed != (":" in host):
        raise _unclear(text, "brackets stand around an IPv6 address, and around nothing else")
    return host, _port(port, text)


def _port(text: str, whole: str) -> int | None:
    if not text:
        return None
    found = _PORT.fullmatch(text)
    if found is None or not 1 <= int(found[1]) <= 65535:
        raise _unclear(whole, "its port is no number from 1 to 65535")
    return int(found[1])


def _target(host: str, port: int, path: str, said: str) -> Target:
    if "%" in host or not host:
        raise _unclear(said, "it names no host")
    found = Target(_address(host) if ":" in host else _name(host, said), port, path)
    try:
        split_address(found.value)
    except ValueError:
        raise _unclear(said, "it names no host") from None
    return found


def _address(text: str) -> str:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return ""
    return str(address.ipv4_mapped or address)


def _name(text: str, said: str) -> str:
    """A name or a dotted IPv4 address. Names of other scripts as IDNA has them (UTS 46), which also folds wide digits."""
    name = text if text.isascii() else _idna(text, said)
    name = name.lower().removesuffix(".")
    try:
        return str(ipaddress.IPv4Address(name))
    except ValueError:
        pass
    if _NUMERIC.fullmatch(name.rpartition(".")[2]):
        raise Sorry(
            400, "address spelling", f"cannot reach {said[:_SAID]!r}: an address is written as four decimal numbers"
        )
    return name


def _idna(text: str, said: str) -> str:
    import idna  # rarely needed, and large

    try:
        return idna.encode(text, uts46=True, std3_rules=True).decode("ascii")
    except idna.IDNAError:
        raise _unclear(said, "it is no host name") from None


def _unclear(text: str, why: str) -> Sorry:
    return Sorry(400, "target", f"cannot read the target {text[:_SAID]!r}: {why}")
