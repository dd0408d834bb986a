"""One component of the desktop: `python -I -m agentbox.box.programs.desktop COMPONENT ARGUMENT…`,
as in the feature files.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Final

from agentbox.box.programs.desktop import handshake, wayland, x11
from agentbox.core.errors import AgentboxError

COMPONENTS: Final[Mapping[str, Callable[..., None]]] = {
    "x11-server": x11.server,
    "x11-session": x11.session,
    "wayland-server": wayland.server,
    "wayland-viewer": wayland.viewer,
    "check": handshake.check,
}


def main(component: str, *arguments: str) -> None:
    """On an error it writes one sentence to the program's log and exits with 1."""
    try:
        COMPONENTS[component](*arguments)
    except AgentboxError as error:
        sys.exit(f"{error.message}. {error.hint}")


if __name__ == "__main__":
    main(*sys.argv[1:])
