"""Hosts in URLs and addresses."""

import ipaddress
import re
from typing import Final

_CLEAR: Final = re.compile(r"(?:http|ws)://(\[[^]]*\]|[^:/?#]*)")


def is_loopback(host: str) -> bool:
    """True for localhost, its subdomains, and loopback addresses."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """True for wildcard addresses."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def clear_text_host(url: str) -> str | None:
    """The host of an http or ws URL; None for any other text."""
    match = _CLEAR.match(url)
    return match[1] if match else None
