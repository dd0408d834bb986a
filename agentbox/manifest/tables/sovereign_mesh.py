"""[sovereign_mesh]: the box's own key pair, signed events, relays."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from agentbox.manifest.types import Env, IpLiteral, Port, Range, TypeName, Unique, WsUrl, key

PublicKey = Annotated[str, TypeName("public_key")]


@dataclass(frozen=True, kw_only=True)
class OperatorTable:
    """[sovereign_mesh.operator]: the operator."""

    pubkey: Annotated[str, TypeName("public_key_or_none")] = key("", "boot")


@dataclass(frozen=True, kw_only=True)
class RelayTable:
    """[sovereign_mesh.relay]: a relay for this box, embedded or external."""

    enabled: bool = key(False, "rebuild")
    implementation: Literal["embedded", "external"] = key("embedded", "boot")
    url: WsUrl = key("", "boot")
    port: Port = key(7777, "rebuild")
    bind: IpLiteral = key("127.0.0.1", "boot")
    expose: bool = key(False, "rebuild")
    ingress_policy: Literal["allowlist", "signed-only", "open"] = key("allowlist", "boot")
    allowed_pubkeys: Annotated[tuple[PublicKey, ...], Unique()] = key((), "live")
    allowed_kinds: Annotated[tuple[Annotated[int, Range(0, 65535)], ...], Unique()] = key(
        (1, 1059, 27235, 30078, 38000, 38100), "live"
    )
    external_fanout: Literal["off", "publish-only", "subscribe-only", "bidirectional"] = key(
        "off", "boot"
    )
    max_event_bytes: Annotated[int, Range(1024, 1048576)] = key(131072, "live")
    messages_per_second: Annotated[int, Range(1, 1000)] = key(5, "live")
    retention_days: Annotated[int, Range(1, 3650)] = key(30, "live")
    allow_nip04: bool = key(False, "boot")


@dataclass(frozen=True, kw_only=True)
class TelegramMirrorTable:
    """[sovereign_mesh.telegram_mirror]: mirrors agent messages to a chat."""

    enabled: bool = key(False, "rebuild")
    bot_token_env: Env = key("AGENTBOX_TELEGRAM_TOKEN", "recreate")
    chat_id_env: Env = key("AGENTBOX_TELEGRAM_CHAT", "recreate")


@dataclass(frozen=True, kw_only=True)
class SovereignMeshTable:
    """Keys are generated at the first boot in the state volume, never written here."""

    enabled: bool = key(False, "rebuild")
    relays: Annotated[tuple[Annotated[str, TypeName("relay")], ...], Unique()] = key((), "boot")
    publish_agent_events: bool = key(False, "boot")
    operator: OperatorTable = field(default_factory=OperatorTable)
    relay: RelayTable = field(default_factory=RelayTable)
    telegram_mirror: TelegramMirrorTable = field(default_factory=TelegramMirrorTable)
