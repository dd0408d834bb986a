"""What of the schema this release can serve. The rest are final names for what comes later; rule E606 refuses them.

A gate is served as soon as a file in `config/features/` has it. Who serves a key removes its row.
"""

from collections.abc import Mapping
from typing import Any, Final

from agentbox.manifest.keys import keys

AVAILABLE: Final[Mapping[str, tuple[Any, ...]]] = {
    "adapters.pods.auth": ("none", "bearer"),
    "agents.*.protocol": ("oneshot", "stdio"),
    "api.auth": ("token",),
    "image.source": ("debian",),
    "privacy.entities": ("*", "account_number", "email", "phone", "secret", "url"),
    "privacy.mode": ("off", "rules"),
    "sovereign_mesh.enabled": (False,),
    "sovereign_mesh.relay.enabled": (False,),
}
"""Choices by key path, of a list those of its words; `*` stands for the name in a map."""

UNREAD: Final[Mapping[str, str]] = {
    "backup.keep": "`agentbox backup`",
    "backup.include": "`agentbox backup`",
    "privacy.policy.inbound": "a filter of what reaches an agent",
    "skills.browser.headed": "a browser that shows itself on the desktop",
    "skills.media.comfyui_url": "the skill that calls it",
}
"""Keys that nothing reads yet, with what will: no value of theirs changes anything, so none may be written."""

_GATED: Final = ("desktop", "gpu", "skills", "toolchains")


def gates() -> tuple[str, ...]:
    """The keys that turn a feature file on: the switches of class rebuild in the tables of capabilities, sorted."""
    switches = (
        path
        for path, spec in keys().items()
        if path.startswith(tuple(f"{table}." for table in _GATED))
        and spec.apply == "rebuild"
        and spec.default is False
    )
    return tuple(sorted((*switches, "gpu.backend", "sovereign_mesh.telegram_mirror.enabled")))
