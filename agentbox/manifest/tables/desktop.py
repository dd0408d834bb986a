"""[desktop]: a remote desktop in the box."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Pattern
from agentbox.manifest.declarations.key import ENABLED, key
from agentbox.manifest.types import Env, Port


@frozen
class DesktopTable:
    """A remote desktop in the box, never without a password."""

    enabled: bool = key(False, "rebuild", doc="Remote desktop.")
    stack: Literal["x11-openbox", "wayland-labwc"] = key(
        "x11-openbox", "rebuild", doc="Display server and window manager.", when=ENABLED
    )
    resolution: Annotated[str, Pattern("^[0-9]{3,5}x[0-9]{3,5}$")] = key(
        "1920x1080", "boot", doc="Width and height in pixels.", unit="pixels", when=ENABLED
    )
    port: Port = key(5901, "rebuild", doc="Port of the desktop.", when=ENABLED)
    password_env: Env = key(
        "AGENTBOX_DESKTOP_PASSWORD",
        "recreate",
        doc="Variable of the password; unset = generated at boot, mode 0600.",
        when=ENABLED,
    )
