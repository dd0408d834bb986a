"""[desktop]: a remote desktop in the box."""

from dataclasses import dataclass
from typing import Annotated, Literal

from agentbox.manifest.types import Env, Port, TextPattern, key


@dataclass(frozen=True, kw_only=True)
class DesktopTable:
    """A desktop protected by a password. An unset password is generated at boot."""

    enabled: bool = key(False, "rebuild")
    stack: Literal["x11-openbox", "wayland-labwc"] = key("x11-openbox", "rebuild")
    resolution: Annotated[str, TextPattern("^[0-9]{3,5}x[0-9]{3,5}$")] = key("1920x1080", "boot")
    port: Port = key(5901, "rebuild")
    password_env: Env = key("AGENTBOX_DESKTOP_PASSWORD", "recreate")
