"""User namespaces: nothing here needs them, so a host may switch them off."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row

NAME = "userns"
TITLE = "unprivileged user namespaces, which are not needed"
_MOST = Path("/proc/sys/user/max_user_namespaces")
_DEBIAN = Path("/proc/sys/kernel/unprivileged_userns_clone")


def look(_host: Host) -> Iterator[Row]:
    switches = [path.read_text(encoding="ascii").strip() for path in (_MOST, _DEBIAN) if path.exists()]
    on = bool(switches) and "0" not in switches
    said = "this host allows them" if on else "this host forbids them"
    yield Row(check=NAME, state="good", said=f"not needed; {said}, and every agent is refused them either way", facts={"allowed": on})  # fmt: skip
