"""Process trees from /proc: descendants of a process, and how to end all of them.

Scans /proc/*/stat, which omits no process. The lists in /proc/<pid>/task/<tid>/children need
CONFIG_PROC_CHILDREN, which some kernels lack, and may omit siblings of a process that exits during
the read (proc(5)): sufficient for a signal.
"""

import contextlib
import os
import signal
from collections.abc import Collection, Container, Iterable, Iterator
from typing import NamedTuple

PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")  # bytes, the unit of `Process.rss`
_STAT_SIZE = 1024
_FREEZE_ROUNDS = 50
_THREAD_ATTEMPTS = 8
_LISTING_ROUNDS = 4


class Process(NamedTuple):
    """A process in /proc. `rss` in pages, `size` of the address space in bytes; `start_ticks` since
    boot: with pid and boot id it identifies a process. `thread` is a live thread if the first one
    has exited, else 0. The descriptors and mappings of a `foreign` process are not readable for its
    own user: it belongs to another user, or its program file is not readable (proc(5), "dumpable").
    """

    pid: int
    parent: int
    state: str
    start_ticks: int
    rss: int
    threads: int = 1
    session: int = 0
    size: int = 0
    foreign: bool = False
    thread: int = 0

    @property
    def procfs_id(self) -> int:
        """The number under which /proc shows descriptors and mappings: that of a live thread."""
        return self.thread or self.pid


ProcessTable = dict[int, Process]


def read_process(pid: int) -> Process | None:
    """One process, None if it has exited. A process whose first thread has exited looks like a
    zombie without memory and descriptors: state and sizes are then those of another thread.
    """
    row = read_thread(pid)
    if row is None or row.state not in "ZX" or row.threads < 2:
        return row
    for _ in range(_THREAD_ATTEMPTS):
        for thread in read_threads(pid):
            if thread.state not in "ZX":
                return row._replace(
                    state=thread.state,
                    rss=thread.rss,
                    size=thread.size,
                    foreign=thread.foreign,
                    thread=thread.pid,
                )
    row = read_thread(pid)
    # Threads that start and exit faster than they can be read, or are about to exit: a process with
    # threads is alive.
    return row._replace(state="R") if row is not None and row.threads > 1 else row


def read_thread(number: int) -> Process | None:
    """One thread, with the values that all threads of a process share; None if it has exited."""
    try:
        stat_fd = os.open(f"/proc/{number}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text, owner = os.read(stat_fd, _STAT_SIZE), os.fstat(stat_fd).st_uid
    except ProcessLookupError:
        return None
    finally:
        os.close(stat_fd)
    # proc(5): the name (2) is in parentheses and may contain any character; then state (3),
    # ppid (4), session (6), threads (20), starttime (22), vsize (23), rss (24).
    fields = text[text.rindex(b")") + 2 :].split(None, 22)
    return Process(
        number,
        int(fields[1]),
        fields[0].decode("ascii"),
        start_ticks=int(fields[19]),
        rss=int(fields[21]),
        threads=int(fields[17]),
        session=int(fields[3]),
        size=int(fields[20]),
        foreign=owner != os.geteuid(),
    )


def thread_group_id(thread: int) -> int:
    """The pid of a thread's process. Raises OSError if there is no such thread."""
    with open(f"/proc/{thread}/status", "rb") as status:  # noqa: PTH123 - few imports
        return next(int(line.split()[1]) for line in status if line.startswith(b"Tgid:"))


def read_threads(pid: int) -> Iterator[Process]:
    """All threads of a process."""
    return (row for number in thread_ids(pid) if (row := read_thread(number)) is not None)


def thread_ids(pid: int) -> list[int]:
    """The ids of a process's threads; empty if it has exited."""
    try:
        # A Path for each costs more than the read.
        return list(map(int, os.listdir(f"/proc/{pid}/task")))  # noqa: PTH208
    except OSError:
        return []


def scan(omit: Container[int] = ()) -> ProcessTable:
    """Every process of this pid namespace but those in `omit`: roots whose own row is not used."""
    names = os.listdir("/proc")  # noqa: PTH208 - a Path for each costs more than the scan
    pids = (int(name) for name in names if name.isdecimal())
    return {pid: row for pid in pids if pid not in omit and (row := read_process(pid)) is not None}


def descendants(table: ProcessTable, roots: Collection[int]) -> list[Process]:
    """All processes below the roots, without the roots."""
    return _collect_below(_children_by_parent(table), roots)


def quick_descendants(root: int) -> list[Process]:
    """The descendants of the root, at a cost independent of other processes. May miss one: no proof
    that none is left.
    """
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):  # noqa: PTH110
        return descendants(scan(), [root])
    rows: dict[int, Process] = {}
    for _ in range(_LISTING_ROUNDS):
        fresh = _list_descendants(root) - rows.keys()
        if not fresh:
            break
        rows |= {pid: row for pid in fresh if (row := read_process(pid)) is not None}
    return list(rows.values())


def _list_descendants(root: int) -> set[int]:
    pids, pending = {root}, [root]
    while pending:
        pid = pending.pop()
        for thread in thread_ids(pid):
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{pid}/task/{thread}/children", "rb") as stream,  # noqa: PTH123
            ):
                children = set(map(int, stream.read().split())) - pids
                pids |= children
                pending += children
    return pids - {root}


def _children_by_parent(table: ProcessTable) -> dict[int, list[Process]]:
    children: dict[int, list[Process]] = {}
    for row in table.values():
        children.setdefault(row.parent, []).append(row)
    return children


def _collect_below(children: dict[int, list[Process]], roots: Collection[int]) -> list[Process]:
    rows: list[Process] = []
    pending = list(roots)
    while pending:
        below = children.get(pending.pop(), [])
        rows += below
        pending += [row.pid for row in below]
    return rows


def descendants_by_root(table: ProcessTable, roots: Collection[int]) -> dict[int, list[Process]]:
    """The descendants of each root, in one pass over the table."""
    children = _children_by_parent(table)
    return {root: _collect_below(children, [root]) for root in roots}


def is_unreadable(row: Process) -> bool:
    """Whether only root can read what the process holds. A process that is about to exit has no
    memory and belongs to root too.
    """
    if not (row.foreign and row.rss):
        return False
    try:
        os.listdir(f"/proc/{row.procfs_id}/fd")  # noqa: PTH208
    except PermissionError:
        current = read_process(row.pid)
        return (
            current is not None
            and current.start_ticks == row.start_ticks
            and current.foreign
            and current.rss > 0
        )
    except OSError:  # it has exited
        pass
    return False


def signal_processes(rows: Iterable[Process], number: int) -> None:
    """Signals each process that is alive."""
    for row in rows:
        if row.state not in "ZX":
            signal_process(row.pid, number)


def signal_process(pid: int, number: int) -> bool:
    """Signals a process. False if it does not exist or may not be signalled."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def freeze(root: int, keep: Collection[int] = ()) -> list[Process]:
    """Stops everything below `root`, new processes included, and returns it. Children in `keep` and
    their descendants are left out.

    Ends when a scan finds nothing new, or after 50 scans: only a kernel limit stops a faster fork
    bomb.
    """
    stopped: set[int] = set()
    rows: list[Process] = []
    for _ in range(_FREEZE_ROUNDS):
        rows = _scan_below(root, keep)
        fresh = [row for row in rows if row.pid not in stopped and row.state not in "ZX"]
        if not fresh:
            break
        signal_processes(fresh, signal.SIGSTOP)
        stopped |= {row.pid for row in fresh}
    return rows


def kill_children(keep: Collection[int] = ()) -> None:
    """Kills and reaps every child of the calling subreaper but `keep`, with all its descendants.

    Returns when no such child is left: while the tree is not empty, one of its processes is a child
    of the subreaper, alive or as a zombie that only the subreaper can reap, so a scan without one
    is proof.
    """
    if not has_children():
        return
    self_pid = os.getpid()
    rows = _scan_below(self_pid, keep)
    while rows:
        signal_processes(rows, signal.SIGKILL)
        for row in rows:
            if row.parent == self_pid:
                os.waitpid(row.pid, 0)
        rows = freeze(
            self_pid, keep
        )  # new processes are stopped before they are killed: it may be a fork bomb


def has_children() -> bool:
    """Whether this process has a child, alive or not reaped. Does not read /proc."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _scan_below(root: int, keep: Collection[int]) -> list[Process]:
    table = scan()
    children = [row for row in table.values() if row.parent == root and row.pid not in keep]
    return [*children, *descendants(table, [row.pid for row in children])]
