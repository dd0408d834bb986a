"""What the port rules share."""

from agentbox.manifest.features.ports import Listener, free_port
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import View


def others_on(view: View, port: int, *, besides: tuple[str, ...]) -> list[Listener]:
    """The other listeners on that port."""
    return [row for row in view.ports if row.port == port and row.owner not in besides]


def taken(view: View, owner: str, other: str) -> Finding:
    """The finding for two owners of one port, with the next free one. `owner` is a manifest key."""
    port = next(row.port for row in view.ports if row.owner == owner)
    key, second = _key(view, owner), _key(view, other)
    if second in view.given.values and view.written(second) and not view.written(key):
        key, second = second, key  # the one that a person chose
    return view.finding(
        key,
        message=f"port {port} is wanted by {owner} and by {other}",
        remedy=f"Set {key} to a free port, such as {free_port(view.ports, port)}.",
        related=(second,),
    )


def _key(view: View, owner: str) -> str:
    """The manifest key of an owner: itself, or for a listener of a feature its gate."""
    feature = view.features.get(owner.partition(":")[0])
    return feature.gate.key if feature and feature.gate else owner
