"""seccomp: filter actions that agents need from the kernel."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult

NAME = "seccomp"
TITLE = "seccomp, which filters system calls of agents"
NEEDED = ("errno", "kill_process", "user_notif")  # seccomp(2); user_notif since Linux 5.0
_AVAILABLE = Path("/proc/sys/kernel/seccomp/actions_avail")


def run_check(_host: CheckContext) -> Iterator[CheckResult]:
    if not _AVAILABLE.exists():
        yield CheckResult(
            check=NAME,
            state="bad",
            message="this kernel was built without seccomp filters",
            advice="Use a kernel with CONFIG_SECCOMP_FILTER.",
        )
        return
    missing = set(NEEDED) - set(_AVAILABLE.read_text(encoding="ascii").split())
    yield CheckResult(
        check=NAME,
        state="bad" if missing else "good",
        message=f"the kernel lacks {', '.join(sorted(missing))}"
        if missing
        else f"the kernel supports {', '.join(NEEDED)}",
        advice="Use Linux 5.9 or later." if missing else "",
    )
