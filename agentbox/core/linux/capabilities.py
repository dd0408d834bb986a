"""Capability sets as text. Numbers: linux/capability.h, as of Linux 6.x; an unknown bit becomes
`CAP_<n>`.
"""

from collections.abc import Iterable

_NAMES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
)
NONE = "none"


def format_names(names: Iterable[str]) -> str:
    """`NET_RAW,SYS_NICE`, sorted; `none` if empty."""
    return ",".join(sorted(set(names))) or NONE


def format_mask(mask: int) -> str:
    """The same for a kernel bit mask."""
    return format_names(
        _capability_name(bit) for bit in range(mask.bit_length()) if mask >> bit & 1
    )


def _capability_name(bit: int) -> str:
    return _NAMES[bit] if bit < len(_NAMES) else f"CAP_{bit}"
