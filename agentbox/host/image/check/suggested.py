"""Files of packages that need others which are only suggested. Debian has the same dangling
links.
"""

from collections.abc import Mapping
from typing import Final

SUGGESTED: Final[Mapping[tuple[str, str], str]] = {
    (
        "deb:libcaca0",
        "libgl_plugin.so",
    ): "draws text pictures in a window if GLUT is installed; the library works without",
    (
        "deb:libqt5core5t64",
        "qtchooser/default.conf",
    ): "the choice of qtchooser, which runs development tools",
}
"""(owner, part of the path) -> why nothing in the image needs it."""


def is_suggested(owner: str, path: str) -> bool:
    """True for such a file or link."""
    return any(
        owner == suggested_owner and fragment in path for suggested_owner, fragment in SUGGESTED
    )
