"""The grants that any program needs to start: libraries and loader, names of users and time zones,
devices without content, and tables of the kernel. Landlock itself hides other processes in /proc,
except their names, command lines and counters.
"""

from typing import Final

from agentbox.core.linux.landlock import PathRule

BASE_GRANTS: Final = (
    *(
        PathRule(path, "rl")
        for path in ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/proc")
    ),
    *(
        PathRule(path, "rl")
        for path in ("/usr/share/zoneinfo", "/etc/ssl", "/sys/devices/system", "/sys/fs/cgroup")
    ),
    *(
        PathRule(path, "rx", recursive=False)
        for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
    ),
    *(
        PathRule(path, "r", recursive=False)
        for path in ("/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/localtime")
    ),
    *(PathRule(path, "r", recursive=False) for path in ("/etc/passwd", "/etc/group", "/etc/hosts")),
    *(
        PathRule(f"/dev/{name}", "rwd", recursive=False)
        for name in ("null", "full", "random", "urandom")
    ),
    # Read only: a writable /dev/zero can be mapped as shared memory (mmap(2), MAP_SHARED), which no
    # limit counts.
    PathRule("/dev/zero", "rd", recursive=False),
)
