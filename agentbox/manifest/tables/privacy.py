"""[privacy]: redaction of data for the slots and the gateway."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from agentbox.manifest.types import Port, Unique, key

Strictness = Literal["strict", "soft", "off"]
Entity = Literal[
    "*", "account_number", "address", "date", "email", "person", "phone", "secret", "url"
]


@dataclass(frozen=True, kw_only=True)
class PrivacyPolicyTable:
    """[privacy.policy]: behaviour when redaction fails, per slot and direction."""

    pods: Strictness = key("strict", "boot")
    memory: Strictness = key("strict", "boot")
    events: Strictness = key("soft", "boot")
    beads: Strictness = key("soft", "boot")
    orchestrator: Strictness = key("off", "boot")
    inbound: Strictness = key("soft", "boot")
    outbound: Strictness = key("soft", "boot")


@dataclass(frozen=True, kw_only=True)
class PrivacyTable:
    """What is redacted, and how."""

    enabled: bool = key(True, "rebuild")
    mode: Literal["off", "rules", "local-cpu", "local-gpu"] = key("rules", "rebuild")
    dtype: Literal["bf16", "f32", "q4"] = key("bf16", "boot")
    port: Port = key(9092, "boot")
    entities: Annotated[tuple[Entity, ...], Unique()] = key(("secret",), "boot")
    policy: PrivacyPolicyTable = field(default_factory=PrivacyPolicyTable)
