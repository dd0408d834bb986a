"""Connection targets: which server a connection string leads to, and whether the connection is
trusted.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.core.paths import Paths
from agentbox.core.records.wire import invalid_value

VERIFIED = "verify-full"
# libpq's default is a file in a home directory, which the box does not have
SYSTEM_ROOTS = "/etc/ssl/certs/ca-certificates.crt"


def trusted_file(paths: Paths, ca_file: str) -> str:
    """The slot's own authorities, else those that `[network] ca_bundle` adds to the image's; "" for
    the image's."""
    if ca_file:
        return str(paths.resolve(ca_file))
    return str(paths.all_authorities) if paths.all_authorities.exists() else ""


def connection_parameters(dsn: str, *, ca_file: str, name: str, timeout_s: int) -> dict[str, Any]:
    """Connection parameters for libpq. `dsn` is a URI or a keyword string, as parsed by libpq.
    Raises ValidationError, which quotes nothing of it, for an invalid string, a missing host, and a
    remote server whose certificate would not be verified against its name.
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
        raise invalid_value("/dsn", "is not a PostgreSQL URI or keyword string") from None
    if "service" in options:
        raise invalid_value(
            "/dsn", "names a service: write the host instead, so that it can be checked"
        )
    if not options.get("host") and not options.get("hostaddr"):
        raise invalid_value("/dsn", "has no host, address or socket directory")
    if options.get("sslmode") != VERIFIED and not all(map(_is_local, _peers(options))):
        raise invalid_value("/dsn", f"connects to another host without sslmode={VERIFIED}")
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
    """Addresses that will be used: `hostaddr` overrides `host`, by position (libpq, 34.1.2)."""
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
