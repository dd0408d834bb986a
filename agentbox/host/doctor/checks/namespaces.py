"""User namespaces: nothing here needs them, so a host may switch them off."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.doctor.host import Host

NAME = "userns"
TITLE = "unprivileged user namespaces, which are not needed"
_MAX_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
_DEBIAN_SWITCH = Path("/proc/sys/kernel/unprivileged_userns_clone")


def run_check(_host: Host) -> Iterator[CheckResult]:
    switches = [
        path.read_text(encoding="ascii").strip()
        for path in (_MAX_NAMESPACES, _DEBIAN_SWITCH)
        if path.exists()
    ]
    allowed = bool(switches) and "0" not in switches
    message = "this host allows them" if allowed else "this host forbids them"
    yield CheckResult(
        check=NAME,
        state="good",
        message=f"not needed; {message}, and every agent is refused them either way",
        facts={"allowed": allowed},
    )
