"""destinations: where the box may have to go, by what the manifest names."""

from dataclasses import replace
from typing import Any

import pytest
from support.plans import plan_of

from agentbox.plan.egress import destinations
from agentbox.plan.model import SlotPlan
from agentbox.plan.network import loopback_targets


def _found(values: dict[str, Any], **slots: SlotPlan) -> list[tuple[str, int, bool]]:
    return [(row.host, row.port, row.private) for row in destinations(values, slots)]


def test_the_default_box_goes_nowhere() -> None:
    """Every slot is local."""
    assert plan_of().egress == ()


@pytest.mark.parametrize(
    ("pattern", "host", "port"),
    [
        ("example.com", "", 443),
        ("*.example.com:8443", "", 8443),
        ("example.com:*", "", 0),
        ("203.0.113.7", "203.0.113.7/32", 443),
        ("203.0.113.0/24:5432", "203.0.113.0/24", 5432),
        ("[2001:db8::1]:25", "2001:db8::1/128", 25),
        ("2001:db8::/32", "2001:db8::/32", 443),
        ("localhost:8080", "127.0.0.1/32", 8080),
        ("models.localhost.:8080", "127.0.0.1/32", 8080),
    ],
)
def test_a_pattern_gives_range_and_port(pattern: str, host: str, port: int) -> None:
    """An absent port is 443, `*` any; a name has no range."""
    assert _found({"egress.allow": [pattern]}) == [(host, port, False)]
    assert _found({"egress.allow_private": [pattern]}) == [(host, port, True)]


def test_what_the_operator_names_may_be_private() -> None:
    """Slots, the mesh host, traces, relays and providers; a provider without address is its vendor's public one."""
    values = {
        "mesh.mode": "client",
        "mesh.host_url": "https://mesh.internal:9090",
        "observability.otlp_endpoint": "http://10.0.0.9:4318",
        "sovereign_mesh.enabled": True,
        "sovereign_mesh.relays": ["wss://relay.example"],
        "providers.local.enabled": True,
        "providers.local.base_url": "http://models.internal",
        "providers.vendor.enabled": True,
        "providers.vendor.base_url": "",
        "providers.unused.enabled": False,
        "providers.unused.base_url": "http://unused:1",
    }
    slots = {
        "beads": SlotPlan(
            use="external-http", required=True, options={"endpoint": "https://beads.internal:8443"}
        ),
        "memory": SlotPlan(use="external-pg", required=False),
        "events": SlotPlan(use="external-http", required=False, options={"endpoint": ""}),
    }
    assert _found(values, **slots) == [
        ("", 80, True),
        ("", 443, False),
        ("", 443, True),
        ("", 5432, True),
        ("", 8443, True),
        ("", 9090, True),
        ("10.0.0.9/32", 4318, True),
    ]


def test_policies_add_what_they_allow() -> None:
    """A deny adds nothing, `$EGRESS` stands for the list above, `tcp` is a port to any address."""
    rules = [
        {"mode": "allow", "operations": ["connect"], "patterns": ["$EGRESS", "git.example:22"]},
        {"mode": "deny", "operations": None, "patterns": ["bad.example"]},
        {"mode": "allow", "operations": ["tcp"], "patterns": ["5432"]},
    ]
    assert _found({"policies.builder.net": rules, "policies.builder.fs": []}) == [
        ("", 22, False),
        ("", 5432, True),
    ]


def test_services_on_loopback_are_known() -> None:
    """By every address of loopback; a database whose address is a secret may be one."""
    slots = {"memory": SlotPlan(use="external-pg", required=False)}
    values = {
        "providers.near.enabled": True,
        "providers.near.base_url": "http://127.0.0.1:11434/v1",
        "providers.far.enabled": True,
        "providers.far.base_url": "https://models.example",
        "observability.otlp_endpoint": "http://localhost:4318",
        "egress.allow": ["example.com", "203.0.113.7:81"],
        "egress.allow_private": [
            "[::1]:82",
            "[::ffff:127.0.0.1]:83",
            "10.0.0.1:84",
            "0.0.0.0/0:85",
            "127.0.0.1:*",
        ],
    }
    plan = plan_of()
    found = loopback_targets(
        replace(plan, slots={**plan.slots, **slots}, egress=destinations(values, slots))
    )
    assert found == (82, 83, 85, 4318, 5432, 11434)
    assert loopback_targets(plan) == ()
