"""What a request with a session's cookie must have: it comes from a page of the box itself.

A browser sends `Sec-Fetch-Site` to https and to loopback addresses only, and no page can set it.
Other ports of a host are another origin, but get its cookies (RFC 6265, 8.5): hence the key.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from agentbox.contracts.logins import COOKIE
from agentbox.core.http.headers import parse_host
from agentbox.core.slot_errors import CrossSite

_MAX_COOKIES: Final = 8  # of the same name; another port can set more


class BrowserRules:
    """`public_base` is the URL of the box for others; "" without one."""

    def __init__(self, public_base: str) -> None:
        parts = urlsplit(public_base)
        self._https_host = parts.hostname if parts.scheme == "https" else None
        self._public_origin = f"{parts.scheme}://{parts.netloc}".lower() if public_base else ""
        self.cookie_name = f"__Host-{COOKIE}" if self._https_host else COOKIE

    def check(self, headers: Mapping[str, str]) -> None:
        """Raises CrossSite unless a page of this box sent the request."""
        if headers.get("sec-fetch-site") != "same-origin":
            raise CrossSite("cannot use this session: the request is not from a page of this box")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._own_origins(headers.get("host", "")):
            raise CrossSite("cannot use this session: the page has another origin than this box")

    def cookies(self, headers: Mapping[str, str]) -> tuple[str, ...]:
        """The values of the session's cookie. There may be several, as another port of the host can
        add one.
        """
        pairs = (part.partition("=") for part in headers.get("cookie", "").split(";"))
        values = [value for name, _, value in pairs if name.strip() == self.cookie_name]
        return tuple(value.strip() for value in values[:_MAX_COOKIES])

    def set_cookie(self, value: str) -> str:
        """The header that gives a browser the cookie; the empty value removes it."""
        secure = "; Secure" if self._https_host else ""
        end = "" if value else "; Max-Age=0"
        return f"{self.cookie_name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{end}"

    def _own_origins(self, host: str) -> tuple[str, ...]:
        if self._https_host and parse_host(host) == self._https_host.lower():
            return (self._public_origin,)
        own = f"http://{host.lower()}"
        return (own, self._public_origin) if self._public_origin else (own,)
