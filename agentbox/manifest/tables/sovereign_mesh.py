"""[sovereign_mesh]: the box's own key pair, signed events, relays."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range, Unique
from agentbox.manifest.declarations.key import ENABLED, key, table
from agentbox.manifest.types import (
    Env,
    IpLiteral,
    Port,
    PublicKey,
    PublicKeyOrNone,
    RelayUrl,
    WsUrl,
)


@frozen
class OperatorTable:
    """The operator of the box."""

    pubkey: PublicKeyOrNone = key(
        "", "boot", doc="The operator's public key.", when={"sovereign_mesh.enabled": True}
    )


@frozen
class RelayTable:
    """A relay for this box."""

    enabled: bool = key(False, "rebuild", doc="A relay for this box.")
    implementation: Literal["embedded", "external"] = key(
        "embedded",
        "boot",
        doc="embedded = a program of this box; external = one elsewhere.",
        when=ENABLED,
    )
    url: WsUrl = key(
        "",
        "boot",
        doc='The external relay; "" = the mesh host\'s.',
        when={**ENABLED, ".implementation": "external"},
    )
    port: Port = key(
        7777,
        "rebuild",
        doc="Its port in the container.",
        when={**ENABLED, ".implementation": "embedded"},
    )
    bind: IpLiteral = key(
        "127.0.0.1",
        "boot",
        doc="The address it listens on in the container.",
        when={**ENABLED, ".implementation": "embedded"},
    )
    expose: bool = key(
        False,
        "rebuild",
        doc="Publish it on the host; needs a wildcard bind.",
        when={**ENABLED, ".implementation": "embedded"},
    )
    ingress_policy: Literal["allowlist", "signed-only", "open"] = key(
        "allowlist",
        "boot",
        doc="Who may write. The box's and the operator's keys always may.",
        when=ENABLED,
    )
    allowed_pubkeys: Annotated[tuple[PublicKey, ...], Unique()] = key(
        (),
        "live",
        doc="Keys that may write under the policy allowlist.",
        when={**ENABLED, ".ingress_policy": "allowlist"},
    )
    allowed_kinds: Annotated[tuple[Annotated[int, Range(0, 65535)], ...], Unique()] = key(
        (1, 1059, 27235, 30078, 38000, 38100),
        "live",
        doc="Kinds of events that are taken.",
        when=ENABLED,
    )
    external_fanout: Literal["off", "publish-only", "subscribe-only", "bidirectional"] = key(
        "off", "boot", doc="Exchange with `sovereign_mesh.relays`.", when=ENABLED
    )
    max_event_bytes: Annotated[int, Range(1024, 1048576)] = key(
        131072,
        "live",
        doc="One event.",
        unit="bytes",
        when={**ENABLED, ".implementation": "embedded"},
    )
    messages_per_second: Annotated[int, Range(1, 1000)] = key(
        5,
        "live",
        doc="Messages of one connection.",
        unit="messages per second",
        when={**ENABLED, ".implementation": "embedded"},
    )
    retention_days: Annotated[int, Range(1, 3650)] = key(
        30,
        "live",
        doc="Retention of events.",
        unit="days",
        when={**ENABLED, ".implementation": "embedded"},
    )
    allow_nip04: bool = key(
        False, "boot", doc="Accept kind 4, whose metadata is readable by anyone.", when=ENABLED
    )


@frozen
class TelegramMirrorTable:
    """Agent messages mirrored to one chat."""

    enabled: bool = key(False, "rebuild", doc="Mirror agent messages to one chat.")
    bot_token_env: Env = key(
        "AGENTBOX_TELEGRAM_TOKEN", "recreate", doc="Variable of the bot's token.", when=ENABLED
    )
    chat_id_env: Env = key(
        "AGENTBOX_TELEGRAM_CHAT", "recreate", doc="Variable of the chat's number.", when=ENABLED
    )


@frozen
class SovereignMeshTable:
    """The box's own key pair, signed events, relays. Keys are generated at first boot, never
    written here.
    """

    enabled: bool = key(False, "rebuild", doc="Box key pair, signed events, relays.")
    relays: Annotated[tuple[RelayUrl, ...], Unique()] = key(
        (), "boot", doc="Relays to use.", when=ENABLED
    )
    publish_agent_events: bool = key(
        False,
        "boot",
        doc="Sign and publish journal events; `/ready` then needs one relay up.",
        when=ENABLED,
    )
    operator: OperatorTable = table(OperatorTable)
    relay: RelayTable = table(RelayTable)
    telegram_mirror: TelegramMirrorTable = table(TelegramMirrorTable)
