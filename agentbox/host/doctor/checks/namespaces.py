"""User namespaces: not needed, so a host may disable them."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult

NAME = "userns"
TITLE = "unprivileged user namespaces, which are not needed"
_MAX_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
_DEBIAN_SWITCH = Path("/proc/sys/kernel/unprivileged_userns_clone")


def run_check(_host: CheckContext) -> Iterator[CheckResult]:
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
        message=f"not needed; {message}, agents are always denied them",
        facts={"allowed": allowed},
    )
