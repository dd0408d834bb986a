"""Helpers of the port rules."""

from agentbox.manifest.features.ports import ListenerSpec, free_port
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext


def other_listeners(
    context: RuleContext, port: int, *, excluding: tuple[str, ...]
) -> list[ListenerSpec]:
    """The other listeners on that port."""
    return [row for row in context.ports if row.port == port and row.owner not in excluding]


def port_conflict(context: RuleContext, owner: str, other: str) -> Finding:
    """The finding for two owners of one port, with a free port. `owner` is a manifest key."""
    port = next(row.port for row in context.ports if row.owner == owner)
    key, second = _key(context, owner), _key(context, other)
    if (
        second in context.inputs.values
        and context.is_written(second)
        and not context.is_written(key)
    ):
        key, second = second, key  # the one that is written in the manifest
    return context.finding(
        key,
        message=f"port {port} is wanted by {owner} and by {other}",
        remedy=f"Set {key} to a free port, such as {free_port(context.ports, port)}.",
        related=(second,),
    )


def _key(context: RuleContext, owner: str) -> str:
    """The manifest key of an owner: itself, or the gate of a feature's listener."""
    feature = context.features.get(owner.partition(":")[0])
    return feature.gate.key if feature and feature.gate else owner
