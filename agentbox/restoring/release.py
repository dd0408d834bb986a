"""A snapshot is restored by the release that wrote it, or by a later one."""

import re
from typing import Final

from agentbox import __version__
from agentbox.core.errors import AgentboxError
from agentbox.restoring.errors import damaged

_RELEASE: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")


def check_release(snapshot: str, release: str, here: str = __version__) -> None:
    """Raises AgentboxError (exit 1) for a newer release, which is named."""
    theirs, ours = _RELEASE.match(release), _RELEASE.match(here)
    if theirs is None or ours is None:
        raise damaged(snapshot, "cut.json", f"names a release that is not one: {release!r}")
    if tuple(map(int, theirs.groups())) > tuple(map(int, ours.groups())):
        raise AgentboxError(
            f"cannot restore {snapshot}: it is of agentbox {release}, and this is {here}",
            f"The box was not touched. Restore it with agentbox {release} or later.",
        )
