"""What the kernel keeps for processes beside their pages, which no resident size counts: the tables of their pages, of addresses too
that hold nothing, and what waits in pipes.
"""

import contextlib
import os
from collections.abc import Sequence
from typing import Final

from agentbox.sandbox.launcher import tree

_ADDRESS_BYTES_PER_TABLE_BYTE: Final = (
    512  # bytes of address for each byte of a table: eight bytes a page of 4 KiB
)
_PIPE_BYTES: Final = 8 << 10  # a descriptor: a pipe has two pages once a user has many
_ASSUMED_DESCRIPTORS: Final = (
    1 << 10
)  # descriptors that a process is thought to have without a look
_KIB: Final = 1024


def upper_bound(rows: Sequence[tree.Process]) -> int:
    """Bytes, from what a scan says: more than they are."""
    return (
        sum(row.size for row in rows) // _ADDRESS_BYTES_PER_TABLE_BYTE
        + len(rows) * _ASSUMED_DESCRIPTORS * _PIPE_BYTES
    )


def measure(rows: Sequence[tree.Process]) -> int:
    """Bytes, by a look at each."""
    return sum(
        _page_tables(row.procfs_id) + _count_descriptors(row.procfs_id) * _PIPE_BYTES
        for row in rows
    )


def _page_tables(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as stream:  # noqa: PTH123 - few imports
        return next(
            (int(line.split()[1]) * _KIB for line in stream if line.startswith(b"VmPTE:")), 0
        )
    return 0


def _count_descriptors(pid: int) -> int:
    """How many it has open: Linux 6.2 and later say it as the size of the folder."""
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{pid}/fd").st_size  # noqa: PTH116
    return 0
