"""The part of the schema that this release supports. Other names are final but reserved; rule E606
rejects them. A gate is supported if a file in `config/features/` has it. Remove a row when its key
becomes supported.
"""

from collections.abc import Mapping
from typing import Any, Final

from agentbox.manifest.keys import keys

AVAILABLE: Final[Mapping[str, tuple[Any, ...]]] = {
    "acp.v2": (False,),
    "adapters.pods.auth": ("none", "bearer"),
    "api.auth": ("token",),
    "image.source": ("debian",),
    "mcp.servers.*.sampling": (False,),
    "privacy.entities": ("*", "account_number", "email", "phone", "secret", "url"),
    "privacy.mode": ("off", "rules"),
    "sovereign_mesh.enabled": (False,),
    "sovereign_mesh.relay.enabled": (False,),
}
"""Choices by key path, for lists their items; `*` stands for a map entry."""

UNREAD: Final[Mapping[str, str]] = {
    "privacy.policy.inbound": "redaction of agent input",
    "skills.browser.headed": "a headed browser on the desktop",
    "skills.media.comfyui_url": "a skill for an external ComfyUI",
}
"""Keys that are not used yet, with their future use: they have no effect, so they are rejected."""

_GATED: Final = ("desktop", "gpu", "skills", "toolchains")


def gates() -> tuple[str, ...]:
    """The keys that enable features: switches of class rebuild in the capability tables, sorted."""
    switches = (
        path
        for path, spec in keys().items()
        if path.startswith(tuple(f"{table}." for table in _GATED))
        and spec.apply == "rebuild"
        and spec.default is False
    )
    return tuple(
        sorted(
            (*switches, "backup.engine", "gpu.backend", "sovereign_mesh.telegram_mirror.enabled")
        )
    )
