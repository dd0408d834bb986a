"""The target of a request in the normalized form used for rights and connections."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from agentbox.gateway.proxy.refusals import ProxyRefusal
from agentbox.policy.patterns.hosts import split_address

_PORT: Final = re.compile(r":([0-9]{1,5})")
_NUMERIC: Final = re.compile(
    r"([0-9]+|0x[0-9a-f]*)"
)  # a last label that resolvers parse as an IPv4 address
_MAX_QUOTED: Final = 80  # characters of a target quoted in an error


@dataclass(frozen=True)
class ProxyTarget:
    """`host` is lower case without a trailing dot, or a compressed address; `path` includes the
    query."""

    host: str
    port: int
    path: str = ""

    @property
    def value(self) -> str:
        """`host:port`, with an IPv6 address in brackets, as in `Policy.decide`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        """The `Host` header of plain HTTP, without port 80 (RFC 9110 section 4.2.3)."""
        return self.value.removesuffix(":80") if self.port == 80 else self.value

    @property
    def address(self) -> "ipaddress.IPv4Address | ipaddress.IPv6Address | None":
        """The address, if `host` is one."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None


def parse_connect(text: str) -> ProxyTarget:
    """Parses the authority of a CONNECT. Raises ProxyRefusal (400)."""
    host, port = _parse_authority(text)
    if port is None:
        raise _invalid_target(text, "the target of a tunnel must be host:port")
    return _build_target(host, port, "", text)


def parse_url(text: str) -> ProxyTarget:
    """Parses an absolute `http` URL. Raises ProxyRefusal (400)."""
    scheme, separator, remainder = text.partition("://")
    if not separator or scheme.lower() != "http":
        raise _invalid_target(text, "only http:// URLs are supported; use CONNECT for https")
    end = min(
        (remainder.find(delimiter) for delimiter in "/?" if delimiter in remainder),
        default=len(remainder),
    )
    authorizer, path = remainder[:end], remainder[end:]
    if "@" in authorizer:
        raise _invalid_target(text, "it must not contain user information")
    if "#" in path or not path.isprintable() or " " in path:
        raise _invalid_target(text, "its path has a character that must be escaped")
    host, port = _parse_authority(authorizer)
    return _build_target(
        host, 80 if port is None else port, path if path.startswith("/") else "/" + path, text
    )


def _parse_authority(text: str) -> tuple[str, int | None]:
    bracketed = text.startswith("[")
    if bracketed:
        host, _, port = text[1:].partition("]")
    else:
        host, colon, port = text.rpartition(":") if ":" in text else (text, "", "")
        port = colon + port
    if bracketed != (":" in host):
        raise _invalid_target(text, "only an IPv6 address must be in brackets")
    return host, _parse_port(port, text)


def _parse_port(text: str, original: str) -> int | None:
    if not text:
        return None
    match = _PORT.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= 65535:
        raise _invalid_target(original, "its port must be a number from 1 to 65535")
    return int(match[1])


def _build_target(host: str, port: int, path: str, original: str) -> ProxyTarget:
    if "%" in host or not host:
        raise _invalid_target(original, "it has no valid host")
    target = ProxyTarget(
        _normalize_ipv6(host) if ":" in host else _normalize_host(host, original), port, path
    )
    try:
        split_address(target.value)
    except ValueError:
        raise _invalid_target(original, "it has no valid host") from None
    return target


def _normalize_ipv6(text: str) -> str:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return ""
    return str(address.ipv4_mapped or address)


def _normalize_host(text: str, original: str) -> str:
    """A host name or dotted IPv4 address. Non-ASCII names are encoded by IDNA (UTS 46), which also
    folds full-width digits."""
    name = text if text.isascii() else _encode_idna(text, original)
    name = name.lower().removesuffix(".")
    try:
        return str(ipaddress.IPv4Address(name))
    except ValueError:
        pass
    if _NUMERIC.fullmatch(name.rpartition(".")[2]):
        raise ProxyRefusal(
            400,
            "address spelling",
            f"cannot reach {original[:_MAX_QUOTED]!r}: an address must be four decimal numbers",
        )
    return name


def _encode_idna(text: str, original: str) -> str:
    import idna  # rarely used, slow to import

    try:
        return idna.encode(text, uts46=True, std3_rules=True).decode("ascii")
    except idna.IDNAError:
        raise _invalid_target(original, "it is not a valid host name") from None


def _invalid_target(text: str, reason: str) -> ProxyRefusal:
    return ProxyRefusal(400, "target", f"cannot read the target {text[:_MAX_QUOTED]!r}: {reason}")
