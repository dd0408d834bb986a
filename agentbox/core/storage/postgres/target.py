"""Which server a connection string leads to, and whether it may be trusted on the way there."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.core.records.wire import invalid_value

VERIFIED = "verify-full"
SYSTEM_ROOTS = "/etc/ssl/certs/ca-certificates.crt"  # libpq's own default is a file in a home that the box has not


def connection_parameters(dsn: str, *, ca_file: str, name: str, timeout_s: int) -> dict[str, Any]:
    """What libpq is to connect with, by keyword. `dsn` is a URI or a keyword string, as libpq itself reads it.

    Raises ValidationError, which quotes nothing of it: for a string that is none, for one that names no host, and for a
    server elsewhere whose certificate would not be checked against its name.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    if not dsn:
        raise invalid_value("/dsn", "is empty: its variable is unset, or its file is not there")
    try:
        options: dict[str, Any] = {
            key: value for key, value in conninfo_to_dict(dsn).items() if value is not None
        }
    except psycopg.ProgrammingError:
        raise invalid_value("/dsn", "is no PostgreSQL URI or keyword string") from None
    if "service" in options:
        raise invalid_value("/dsn", "names a service: write out the host, so that it can be judged")
    if not options.get("host") and not options.get("hostaddr"):
        raise invalid_value("/dsn", "names no host, address or socket folder")
    if options.get("sslmode") != VERIFIED and not all(map(_is_local, _peers(options))):
        raise invalid_value("/dsn", f"leads to another host without sslmode={VERIFIED}")
    if str(options.get("sslmode", "")).startswith("verify-"):
        options.setdefault("sslrootcert", ca_file or SYSTEM_ROOTS)
    options["application_name"] = name
    limits = {
        "connect_timeout": timeout_s,
        "tcp_user_timeout": timeout_s * 1000,
        "keepalives_idle": 15,
    }
    return {**limits, **options}


def _peers(options: Mapping[str, Any]) -> Iterator[str]:
    """Where packets go: `hostaddr` wins over `host`, place by place (libpq, 34.1.2)."""
    hosts, addresses = (str(options.get(key, "")).split(",") for key in ("host", "hostaddr"))
    for index in range(max(len(hosts), len(addresses))):
        address = addresses[index] if index < len(addresses) else ""
        yield address or (hosts[index] if index < len(hosts) else "")


def _is_local(peer: str) -> bool:
    """A Unix socket, or a loopback address."""
    if peer.startswith(("/", "@")) or peer == "localhost":
        return True
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
