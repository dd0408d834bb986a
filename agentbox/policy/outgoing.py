"""How programs of a box reach others: through which proxy, and whom they trust. Phase 2 of the boot
writes it for those that belong to the box; agents cannot read it.
"""

import ipaddress
import json
import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from agentbox.core.paths import Paths
from agentbox.policy.patterns.hosts import HostPattern

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


@dataclass(frozen=True)
class Outgoing:
    """`proxy` and the files are "" if there are none. `account`: `user:password`."""

    proxy: str = ""
    account: str = ""
    no_proxy: tuple[str, ...] = ()
    resolve: str = ""
    all_authorities: str = ""  # those of the image and the operator's
    own_authorities: str = ""  # the operator's alone

    @classmethod
    def read(cls, paths: Paths) -> "Outgoing":
        """As the boot wrote it; a box without `[network]` has no such file. Raises OSError."""
        try:
            document: dict[str, Any] = json.loads(paths.outgoing.read_bytes())
        except FileNotFoundError:
            return cls()
        return cls(**{**document, "no_proxy": tuple(document["no_proxy"])})

    def is_direct(self, host: str, port: int) -> bool:
        """Whether a server is reached without the proxy."""
        if not self.proxy or _is_loopback(host):
            return True
        name = host.lower().rstrip(".")
        value = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        return any(pattern.matches(value) for pattern in self._exceptions)

    def proxy_for(self, url: str) -> str:
        """The proxy for a URL, with user and password; "" for none."""
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 443)
        return "" if self.is_direct(parts.hostname or "", port) else self.proxy_url

    @cached_property
    def proxy_url(self) -> str:
        """With user and password."""
        if not self.account:
            return self.proxy
        user, _, password = self.account.partition(":")
        parts = urlsplit(self.proxy)
        access = f"{quote(user, safe='')}:{quote(password, safe='')}"
        return parts._replace(netloc=f"{access}@{parts.netloc}").geturl()

    def tls(self, ca_file: Path | None = None) -> ssl.SSLContext | None:
        """Trusts everybody's authorities and the operator's; with `ca_file` those in it and the
        operator's. None if there is nothing to add to a library's own. Raises OSError.
        """
        if ca_file is None:
            return self.context() if self.all_authorities else None
        context = ssl.create_default_context(cafile=str(ca_file))
        if self.own_authorities:
            context.load_verify_locations(self.own_authorities)
        return context

    def context(self) -> ssl.SSLContext:
        """Trusts everybody's authorities and the operator's."""
        return ssl.create_default_context(cafile=self.all_authorities or None)

    @cached_property
    def _exceptions(self) -> tuple[HostPattern, ...]:
        return tuple(HostPattern.parse(f"{text}:*") for text in self.no_proxy)


DIRECT = Outgoing()
"""Without a proxy, and with the authorities of the image."""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
