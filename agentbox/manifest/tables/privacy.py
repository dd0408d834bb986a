"""[privacy]: redaction of data for the slots and the gateway."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Unique
from agentbox.manifest.declarations.key import ENABLED, key, table
from agentbox.manifest.types import Port

Strictness = Literal["strict", "soft", "off"]
Entity = Literal[
    "*", "account_number", "address", "date", "email", "person", "phone", "secret", "url"
]


@frozen
class PrivacyPolicyTable:
    """What happens while the filter is down."""

    pods: Strictness = key(
        "strict",
        "boot",
        doc="The filter in front of pods: when it is down, strict rejects the write, "
        "soft passes and counts.",
    )
    memory: Strictness = key(
        "strict",
        "boot",
        doc="The filter in front of memory: when it is down, strict rejects the write, "
        "soft passes and counts.",
    )
    events: Strictness = key(
        "soft",
        "boot",
        doc="The filter in front of events: when it is down, strict rejects the write, "
        "soft passes and counts.",
    )
    beads: Strictness = key(
        "soft",
        "boot",
        doc="The filter in front of beads: when it is down, strict rejects the write, "
        "soft passes and counts.",
    )
    orchestrator: Strictness = key(
        "off",
        "boot",
        doc="The filter in front of orchestrator: when it is down, strict rejects the "
        "write, soft passes and counts.",
    )
    inbound: Strictness = key(
        "soft", "boot", doc="Redaction of agent input; rejected until a release supports it (E606)."
    )
    outbound: Strictness = key(
        "soft",
        "boot",
        doc="The filter towards a provider: when it is down, strict rejects the write, "
        "soft passes and counts.",
    )


@frozen
class PrivacyTable:
    """Redaction in front of the slots and the gateway."""

    enabled: bool = key(True, "rebuild", doc="Redaction on or off.")
    mode: Literal["off", "rules", "local-cpu", "local-gpu"] = key(
        "rules",
        "rebuild",
        doc="rules = built-in detectors in process; local-* = model program on loopback, "
        "rules first.",
        when=ENABLED,
    )
    dtype: Literal["bf16", "f32", "q4"] = key(
        "bf16", "boot", doc="Model weights.", when={**ENABLED, ".mode": ("local-cpu", "local-gpu")}
    )
    port: Port = key(
        9092,
        "boot",
        doc="Loopback port of the model program.",
        when={**ENABLED, ".mode": ("local-cpu", "local-gpu")},
    )
    entities: Annotated[tuple[Entity, ...], Unique()] = key(
        ("secret",), "boot", doc='What is redacted; ["*"] = all.', when=ENABLED
    )
    policy: PrivacyPolicyTable = table(PrivacyPolicyTable, when=ENABLED)
