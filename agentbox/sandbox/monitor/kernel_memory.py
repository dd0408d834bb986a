"""Kernel memory of processes that resident sizes omit: page tables, also of unused addresses, and
the buffers of pipes.
"""

import contextlib
import os
from collections.abc import Sequence
from typing import Final

from agentbox.sandbox.launcher import tree

_ADDRESS_BYTES_PER_TABLE_BYTE: Final = (
    512  # bytes of address space per byte of page table: eight bytes per page of 4 KiB
)
_PIPE_BYTES: Final = 8 << 10  # per descriptor: a pipe has two pages once a user has many
_ASSUMED_DESCRIPTORS: Final = 1 << 10  # assumed descriptors of a process that is not examined
_KIB: Final = 1024


def upper_bound(rows: Sequence[tree.Process]) -> int:
    """Bytes, an upper bound from a scan."""
    return (
        sum(row.size for row in rows) // _ADDRESS_BYTES_PER_TABLE_BYTE
        + len(rows) * _ASSUMED_DESCRIPTORS * _PIPE_BYTES
    )


def measure(rows: Sequence[tree.Process]) -> int:
    """Bytes, from reading each process."""
    return sum(
        _page_tables(row.procfs_id) + _count_descriptors(row.procfs_id) * _PIPE_BYTES
        for row in rows
    )


def _page_tables(pid: int) -> int:
    path = f"/proc/{pid}/status"
    with contextlib.suppress(OSError), open(path, "rb") as stream:  # noqa: PTH123 - few imports
        return next(
            (int(line.split()[1]) * _KIB for line in stream if line.startswith(b"VmPTE:")), 0
        )
    return 0


def _count_descriptors(pid: int) -> int:
    """The number of open descriptors: Linux 6.2 and later report it as the size of the
    directory.
    """
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{pid}/fd").st_size  # noqa: PTH116
    return 0
