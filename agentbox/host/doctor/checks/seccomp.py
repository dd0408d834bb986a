"""seccomp: the answers that the filter of an agent needs from the kernel."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row

NAME = "seccomp"
TITLE = "seccomp, which holds an agent's system calls"
NEEDED = ("errno", "kill_process", "user_notif")  # seccomp(2); user_notif since Linux 5.0
_AVAILABLE = Path("/proc/sys/kernel/seccomp/actions_avail")


def look(_host: Host) -> Iterator[Row]:
    if not _AVAILABLE.exists():
        yield Row(check=NAME, state="bad", said="this kernel was built without seccomp filters", advice="Use a kernel with CONFIG_SECCOMP_FILTER.")  # fmt: skip
        return
    lacking = set(NEEDED) - set(_AVAILABLE.read_text(encoding="ascii").split())
    yield Row(
        check=NAME, state="bad" if lacking else "good",
        said=f"the kernel lacks {', '.join(sorted(lacking))}" if lacking else f"the kernel knows {', '.join(NEEDED)}",
        advice="Use Linux 5.9 or later." if lacking else "",
    )  # fmt: skip
