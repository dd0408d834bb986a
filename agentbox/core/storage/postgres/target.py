"""Which server a connection string leads to, and whether it may be trusted on the way there."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.core.records.wire import refuse

VERIFIED = "verify-full"
SYSTEM_ROOTS = "/etc/ssl/certs/ca-certificates.crt"  # libpq's own default is a file in a home that the box has not


def parameters(dsn: str, *, ca_file: str, name: str, timeout_s: int) -> dict[str, Any]:
    """What libpq is to connect with, by keyword. `dsn` is a URI or a keyword string, as libpq itself reads it.

    Raises ValidationError, which quotes nothing of it: for a string that is none, for one that names no host, and for a
    server elsewhere whose certificate would not be checked against its name.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    if not dsn:
        raise refuse("/dsn", "is empty: its variable is unset, or its file is not there")
    try:
        found: dict[str, Any] = {key: value for key, value in conninfo_to_dict(dsn).items() if value is not None}
    except psycopg.ProgrammingError:
        raise refuse("/dsn", "is no PostgreSQL URI or keyword string") from None
    if "service" in found:
        raise refuse("/dsn", "names a service: write out the host, so that it can be judged")
    if not found.get("host") and not found.get("hostaddr"):
        raise refuse("/dsn", "names no host, address or socket folder")
    if found.get("sslmode") != VERIFIED and not all(map(_near, _peers(found))):
        raise refuse("/dsn", f"leads to another host without sslmode={VERIFIED}")
    if str(found.get("sslmode", "")).startswith("verify-"):
        found.setdefault("sslrootcert", ca_file or SYSTEM_ROOTS)
    found["application_name"] = name
    limits = {"connect_timeout": timeout_s, "tcp_user_timeout": timeout_s * 1000, "keepalives_idle": 15}
    return {**limits, **found}


def _peers(found: Mapping[str, Any]) -> Iterator[str]:
    """Where packets go: `hostaddr` wins over `host`, place by place (libpq, 34.1.2)."""
    hosts, addresses = (str(found.get(key, "")).split(",") for key in ("host", "hostaddr"))
    for place in range(max(len(hosts), len(addresses))):
        address = addresses[place] if place < len(addresses) else ""
        yield address or (hosts[place] if place < len(hosts) else "")


def _near(peer: str) -> bool:
    """A Unix socket, or a loopback address."""
    if peer.startswith(("/", "@")) or peer == "localhost":
        return True
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
