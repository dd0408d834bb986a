"""plan -> NetworkPolicy of the box: allowed ingress and egress. Resolved names are checked by the
gateway.
"""

import ipaddress
from typing import Any

from agentbox.plan.model import Destination, Plan
from agentbox.plan.render.kubernetes.names import CLIENT, SCRAPE, selector_labels

# The ranges that the proxy blocks (`policy/patterns/blocked_ranges.py`), as far as a NetworkPolicy
# can.
_BLOCKED = ("127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "::1/128", "fe80::/10", "ff00::/8")
_PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
_EVERYWHERE = ("0.0.0.0/0", "::/0")


def network_policy(plan: Plan) -> dict[str, Any]:
    """Ingress to both ports from labelled pods of the same namespace; egress to cluster DNS and to
    the plan's destinations.
    """
    return {
        "podSelector": {"matchLabels": selector_labels(plan)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            _ingress_rule(CLIENT, plan.api.port),
            _ingress_rule(SCRAPE, plan.observability.metrics_port),
        ],
        "egress": [_dns(), *_egress(plan.egress)],
    }


def _ingress_rule(labels: dict[str, str], port: int) -> dict[str, Any]:
    return {
        "from": [{"podSelector": {"matchLabels": labels}}],
        "ports": [{"protocol": "TCP", "port": port}],
    }


def _dns() -> dict[str, Any]:
    """CoreDNS uses the label of its predecessor."""
    peer = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    return {
        "to": [peer],
        "ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")],
    }


def _egress(rows: tuple[Destination, ...]) -> list[dict[str, Any]]:
    """One rule per set of addresses, with all its ports."""
    ports: dict[tuple[str, bool], set[int]] = {}
    for row in rows:
        # The proxy blocks private addresses in `egress.allow`.
        if row.host and not row.private and not ipaddress.ip_network(row.host).is_global:
            continue
        ports.setdefault((row.host, row.private), set()).add(row.port)
    return [
        {"to": _peers(host, private=private), "ports": _ports(ports[host, private])}
        for host, private in sorted(ports)
    ]


def _ports(numbers: set[int]) -> list[dict[str, Any]]:
    """Without ports a rule allows all ports of the protocol."""
    if 0 in numbers:
        return [{"protocol": "TCP"}]
    return [{"protocol": "TCP", "port": number} for number in sorted(numbers)]


def _peers(host: str, *, private: bool) -> list[dict[str, Any]]:
    if host:
        return [{"ipBlock": {"cidr": host}}]
    excluded = _BLOCKED if private else (*_BLOCKED, *_PRIVATE)
    return [_block(block, excluded) for block in _EVERYWHERE]


def _block(block: str, excluded: tuple[str, ...]) -> dict[str, Any]:
    version = ipaddress.ip_network(block).version
    inside = [row for row in sorted(excluded) if ipaddress.ip_network(row).version == version]
    return {"ipBlock": {"cidr": block, "except": inside}}
