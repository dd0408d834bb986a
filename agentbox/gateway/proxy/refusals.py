"""Error responses of the proxy: status, rule, and a sentence with a hint."""

from typing import Final

import h11

REASONS: Final = {
    400: "Bad Request",
    403: "Forbidden",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class ProxyRefusal(Exception):
    """Ends a request. `rule` is one of a closed set, for counters; `is_denial` marks a denied
    right."""

    def __init__(self, status: int, rule: str, message: str, *, is_denial: bool = True) -> None:
        super().__init__(message)
        self.status, self.rule, self.message, self.is_denial = status, rule, message, is_denial


def refusal_response(refusal: ProxyRefusal) -> tuple[h11.Response, bytes]:
    """Head and body. The connection is closed, since what follows may be the rest of the rejected
    request."""
    body = f"{refusal.message}\n".encode(errors="replace")
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
        ("Agentbox-Rule", refusal.rule),
        ("Cache-Control", "no-store"),
    ]
    if refusal.status == 407:
        headers.append(("Proxy-Authenticate", 'Basic realm="agentbox", charset="UTF-8"'))
    if refusal.status in (429, 503):
        headers.append(("Retry-After", "60" if refusal.rule == "limit:egress" else "1"))
    return h11.Response(
        status_code=refusal.status, headers=headers, reason=REASONS[refusal.status]
    ), body
