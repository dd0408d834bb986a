"""Destinations that a box may have to connect to, according to the manifest: for a network policy
outside the box.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from agentbox.manifest.named_types import parse_address
from agentbox.manifest.slot_options import BridgeOptions, EndpointOptions, PostgresOptions
from agentbox.plan.model import Destination, SlotPlan
from agentbox.plan.slots import slot_options

_HTTPS = 443
_POSTGRES = 5432  # default port of a connection string; the string itself is a secret
_LOOPBACK = "127.0.0.1/32"
_SCHEMES = {"http": 80, "https": _HTTPS, "ws": 80, "wss": _HTTPS}


def destinations(
    values: Mapping[str, Any], slots: Mapping[str, SlotPlan]
) -> tuple[Destination, ...]:
    """Sorted, without duplicates. `values` are effective values by key path. Destinations of the
    operator (slots, mesh host, providers, relays, `egress.allow_private`) may be in a private
    network; those of `egress.allow` and policies may not, as in the proxy of the box.
    """
    items = [*_slots(values, slots), *_urls(values), *_patterns(values)]
    return tuple(sorted(set(items), key=lambda row: (row.host, row.port, row.private, row.owner)))


def _slots(values: Mapping[str, Any], slots: Mapping[str, SlotPlan]) -> Iterator[Destination]:
    for name in slots:
        owner = f"adapters.{name}"
        match slot_options(slots, name):
            case PostgresOptions():
                yield Destination(owner=owner, host="", port=_POSTGRES, private=True)
            case EndpointOptions(endpoint=url) if url:
                yield _url_destination(f"{owner}.endpoint", url)
            case BridgeOptions(command=command) if url := _option_value("--url", command):
                yield _url_destination(f"{owner}.command", url)


def _option_value(option: str, command: Sequence[str]) -> str:
    """The value of an option of the bridge's command, separate or after `=`; "" if it is absent."""
    arguments = [
        word
        for argument in command
        for word in (argument.split("=", 1) if argument.startswith(f"{option}=") else (argument,))
    ]
    index = arguments.index(option) + 1 if option in arguments else len(arguments)
    return arguments[index] if index < len(arguments) else ""


def _urls(values: Mapping[str, Any]) -> Iterator[Destination]:
    if values.get("mesh.mode") == "client":
        yield from _url_destinations("mesh.host_url", values["mesh.host_url"])
    yield from _url_destinations("network.proxy", values.get("network.proxy", ""))
    yield from _url_destinations(
        "observability.otlp_endpoint", values.get("observability.otlp_endpoint", "")
    )
    if address := parse_address(values.get("backup.repository", "")):
        owner, host = "backup.repository", _address(address.host)
        yield Destination(owner=owner, host=host, port=address.port, private=True)
    if values.get("sovereign_mesh.enabled"):
        yield from _url_destinations(
            "sovereign_mesh.relays", *values.get("sovereign_mesh.relays", ())
        )
        yield from _url_destinations(
            "sovereign_mesh.relay.url", values.get("sovereign_mesh.relay.url", "")
        )
    for key, is_enabled in values.items():
        if key.startswith("providers.") and key.endswith(".enabled") and is_enabled:
            owner = key.removesuffix("enabled") + "base_url"
            if url := values.get(owner, ""):
                yield _url_destination(owner, url)
            else:
                yield Destination(owner=owner, host="", port=_HTTPS, private=False)
        if key == "sovereign_mesh.telegram_mirror.enabled" and is_enabled:
            yield Destination(owner=key, host="", port=_HTTPS, private=False)


def _patterns(values: Mapping[str, Any]) -> Iterator[Destination]:
    for pattern in values.get("egress.allow", ()):
        yield _pattern_destination("egress.allow", pattern, private=False)
    for pattern in values.get("egress.allow_private", ()):
        yield _pattern_destination("egress.allow_private", pattern, private=True)
    for key, rules in values.items():
        if key.startswith("policies.") and key.endswith(".net"):
            yield from _rule_destinations(key, rules)


def _rule_destinations(owner: str, rules: Any) -> Iterator[Destination]:
    for rule in rules:
        if rule["mode"] != "allow":
            continue
        for pattern in rule["patterns"]:
            if "tcp" in (rule.get("operations") or ()):
                yield Destination(owner=owner, host="", port=int(pattern), private=True)
            elif not pattern.startswith("$"):
                yield _pattern_destination(owner, pattern, private=False)


def _url_destinations(owner: str, *urls: str) -> Iterator[Destination]:
    yield from (_url_destination(owner, url) for url in urls if url)


def _url_destination(owner: str, url: str) -> Destination:
    parts = urlsplit(url)
    port = parts.port or _SCHEMES.get(parts.scheme, _HTTPS)
    return Destination(owner=owner, host=_address(parts.hostname or ""), port=port, private=True)


def _pattern_destination(owner: str, pattern: str, *, private: bool) -> Destination:
    """`host[:port]`, `[v6][:port]`, `CIDR[:port]`: absent = 443, `*` = any (0)."""
    if pattern.startswith("["):
        host, _, port = pattern[1:].partition("]")
    elif pattern.count(":") > 1:
        host, port = pattern, ""
    else:
        host, _, port = pattern.partition(":")
    number = port.lstrip(":")
    return Destination(
        owner=owner,
        host=_address(host),
        port=0 if number == "*" else int(number or _HTTPS),
        private=private,
    )


def _address(host: str) -> str:
    """The address range in CIDR form if `host` is one, else "": names are checked by the gateway,
    not by address.
    """
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(
        ".localhost"
    ):  # RFC 6761: loopback, whatever a resolver returns
        return _LOOPBACK
    try:
        return str(ipaddress.ip_network(host, strict=False))
    except ValueError:
        return ""
