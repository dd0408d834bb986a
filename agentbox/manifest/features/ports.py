"""The port table: all listeners that a manifest enables, with the key or feature that owns each."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentbox.manifest.features.loader import value_at
from agentbox.manifest.features.model import Feature, FixedPort
from agentbox.manifest.gateway_port import GATEWAY_PORT
from agentbox.manifest.model import Model


@dataclass(frozen=True)
class ListenerSpec:
    """`owner` is a manifest key, `gateway`, or `<feature>:<name>`; a published one is reachable
    from the host.
    """

    owner: str
    port: int
    published: bool


def port_table(
    model: Model, features: Mapping[str, Feature], enabled: Iterable[str]
) -> tuple[ListenerSpec, ...]:
    """All listeners, in the order in which conflicts are reported."""
    rows = [
        ListenerSpec("api.port", model.api.port, published=True),
        ListenerSpec(
            "observability.metrics_port", model.observability.metrics_port, published=True
        ),
    ]
    if model.privacy.enabled and model.privacy.mode.startswith("local-"):
        rows.append(ListenerSpec("privacy.port", model.privacy.port, published=False))
    if model.adapters.orchestrator.use != "off":
        rows.append(ListenerSpec("gateway", GATEWAY_PORT, published=False))
    if model.desktop.enabled:
        rows.append(ListenerSpec("desktop.port", model.desktop.port, published=True))
    relay = model.sovereign_mesh.relay
    if relay.enabled and relay.implementation == "embedded":
        rows.append(ListenerSpec("sovereign_mesh.relay.port", relay.port, published=relay.expose))
    rows += [_listener(model, name, fixed) for name in enabled for fixed in features[name].ports]
    return tuple(dict.fromkeys(rows))  # a key is listed once, even if several features use it


def _listener(model: Model, feature: str, fixed: FixedPort) -> ListenerSpec:
    if fixed.key:
        return ListenerSpec(fixed.key, value_at(model, fixed.key), fixed.publish)
    return ListenerSpec(f"{feature}:{fixed.name}", fixed.port, fixed.publish)


def free_port(table: Iterable[ListenerSpec], start: int) -> int:
    """The first port above `start` that is not in the table."""
    used = {row.port for row in table}
    return next(
        port
        for port in itertools.chain(range(start + 1, 65536), range(1024, start))
        if port not in used
    )
