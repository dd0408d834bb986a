"""What a host offers to a box: endpoints, contract versions, and their compatibility."""

import hashlib
from collections.abc import Mapping

from agentbox.adapters.runtime.registry import resolve
from agentbox.contracts.mesh import OFFERED_SLOTS, Endpoint, Registration
from agentbox.core.canonical import canonical_json
from agentbox.plan.model import Plan

_IMPL = {"beads": "external-http", "pods": "external-solid", "events": "external-http"}
_PATH = {"beads": "", "pods": "/v1/pods/boxes/{instance}/", "events": "/v1/events"}
_SCOPES = {
    "beads": ("beads:read", "beads:write"),
    "pods": ("pods:read", "pods:write"),
    "events": ("events:write",),
}


def public_base(plan: Plan) -> str:
    """The URL under which boxes reach this API, without a trailing slash."""
    return (plan.api.public_base or f"http://127.0.0.1:{plan.api.port}").rstrip("/")


def offered_contracts(plan: Plan) -> dict[str, str]:
    """Contract version of each mesh slot that is not off on this host."""
    served = ((slot, plan.slots[slot].use) for slot in OFFERED_SLOTS if slot in plan.slots)
    return {
        slot: resolve(slot, use).contract_version  # type: ignore[arg-type]
        for slot, use in served
        if use != "off"
    }


def offered_endpoints(plan: Plan, instance_id: str) -> dict[str, Endpoint]:
    """The endpoint of each offered slot for the box."""
    base = public_base(plan)
    return {
        slot: Endpoint(impl=_IMPL[slot], url=base + _PATH[slot].format(instance=instance_id))
        for slot in offered_contracts(plan)
    }


def revision(plan: Plan) -> str:
    """A digest that changes with the offers or their address."""
    offered = {"base": public_base(plan), "contracts": offered_contracts(plan)}
    return hashlib.sha256(canonical_json(offered)).hexdigest()[:16]


def scopes(impls: Mapping[str, str], offered: Mapping[str, str]) -> frozenset[str]:
    """The scopes of a box: slots that it sets external and this host offers."""
    return frozenset(
        scope for slot in offered if _is_external(impls.get(slot, "")) for scope in _SCOPES[slot]
    )


def mismatches(
    theirs: Mapping[str, str], impls: Mapping[str, str], ours: Mapping[str, str]
) -> list[dict[str, str]]:
    """External slots of the box with a different major version. `ours` and `theirs` from the host's
    view."""
    return [
        {"slot": slot, "ours": version, "theirs": theirs.get(slot, "")}
        for slot, version in ours.items()
        if _is_external(impls.get(slot, ""))
        and _parse_version(theirs.get(slot, ""))[0] != _parse_version(version)[0]
    ]


def common_contracts(registration: Registration, offered: Mapping[str, str]) -> dict[str, str]:
    """The version used by both sides: the lower one."""
    return {
        slot: min(version, registration.contracts.get(slot) or version, key=_parse_version)
        for slot, version in offered.items()
    }


def _is_external(impl: str) -> bool:
    return impl.startswith("external-")


def _parse_version(version: str) -> tuple[int, ...]:
    """(-1,) for an invalid version."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(number.isdecimal() for number in parts) else (-1,)
