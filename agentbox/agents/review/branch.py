"""Creates a branch: a copy of the workspace for one agent, made by several processes in
parallel."""

import json
import marshal
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentbox.agents.review import baseline, copying, git_dir
from agentbox.agents.review.commits import git_start
from agentbox.agents.review.copying import TreeCopier
from agentbox.agents.runs import home
from agentbox.core.frozen import frozen
from agentbox.core.linux import path_opener
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.path_opener import UNBOUNDED, Boundary

if TYPE_CHECKING:
    from agentbox.agents.review.copying import CopyResult

SMALL_TREE: Final = 400  # entries; up to here a thread is faster than starting processes
MAX_SHARES: Final = 4
WORK: Final = "work"

ReportProgress = Callable[[int], None]


@frozen
class Branch:
    """`work` is the copy, of about `size` bytes at the start; `objects` are git object directories
    outside it that its repository needs."""

    work: Path
    objects: tuple[str, ...] = ()
    size: int = 0


def create(
    workspace: Path,
    directory: Path,
    baseline_path: Path,
    committer: tuple[str, str],
    report_progress: ReportProgress = lambda _: None,
    boundary: Boundary = UNBOUNDED,
) -> Branch:
    """Return the branch in `directory`; created once, complete when `baseline_path` exists.
    `committer`: name and address for commits.

    `report_progress` is called with the number of copied files, from any thread. The workspace is
    opened within the `boundary` and accessed only by that descriptor. Blocks. Raises OSError and
    leaves nothing behind.
    """
    work = directory / WORK
    recorded = baseline.read(baseline_path)
    if recorded is not None and work.is_dir():
        return Branch(work=work, objects=recorded.objects, size=recorded.size)
    home.remove(work)
    try:
        work.mkdir(mode=0o700, parents=True)
        with (
            path_opener.opened_directory(str(workspace), boundary) as source,
            path_opener.opened_directory(str(work)) as target,
        ):
            lines, directories, blocks, git_paths = _copy(source, target, report_progress)
            objects = git_dir.create(source, str(workspace), target, git_paths, *committer)
            git = git_start.read_start(target, git_dir.object_format(target))
        _restore_directories(str(work), directories)
        lines += (json.dumps((path, "g")) for path in git_paths)
        baseline.write(baseline_path, str(workspace), objects, lines, git)
    except BaseException:
        home.remove(work)
        raise
    return Branch(work=work, objects=objects, size=baseline.size_of(len(lines), blocks))


def _copy(source: int, target: int, report_progress: ReportProgress) -> "CopyResult":
    shares = min(MAX_SHARES, len(os.sched_getaffinity(0)))
    if not _is_small(source):
        return _copy_in_processes(source, target, shares, report_progress)
    copier = TreeCopier(source, target)
    copier.copy()
    return copier.result()


def _is_small(source: int) -> bool:
    count, pending = 0, [""]
    while pending:
        path = pending.pop()
        with (
            suppress(OSError),
            _open_directory(source, path) as directory,
            os.scandir(directory) as entries,
        ):
            for entry in entries:
                count += 1
                if count > SMALL_TREE:
                    return False
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{path}/{entry.name}".lstrip("/"))
    return True


@contextmanager
def _open_directory(root: int, path: str) -> Iterator[int]:
    descriptor = open_beneath(root, path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _copy_in_processes(
    source: int, target: int, shares: int, report_progress: ReportProgress
) -> "CopyResult":
    done = [0] * shares
    results: list[object] = [None] * shares

    def read_output(number: int, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        with closing(process.stdout) as out:
            while (line := out.readline()).strip():
                done[number] = int(line)
                report_progress(sum(done))
            data = out.read()
        results[number] = marshal.loads(data) if process.wait() == 0 and data else 0

    processes = [_start_copy(source, target, number, shares) for number in range(shares)]
    threads = [threading.Thread(target=read_output, args=pair) for pair in enumerate(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines: list[str] = []
    directories: list[tuple[str, int, int]] = []
    blocks, git_paths = 0, []
    for result in results:
        if not isinstance(result, tuple):
            number = result if isinstance(result, int) else 0
            raise OSError(number, os.strerror(number) if number else "a copy process exited early")
        lines += result[0]
        directories += result[1]
        blocks += result[2]
        git_paths = result[3]  # each share found all of them
    return lines, directories, blocks, git_paths


def _start_copy(source: int, target: int, number: int, shares: int) -> "subprocess.Popen[bytes]":
    arguments = map(str, (source, target, number, shares))
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-X", "utf8", copying.__file__, *arguments],
        pass_fds=(source, target),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )


def _restore_directories(work: str, directories: list[tuple[str, int, int]]) -> None:
    """Restore modes and times of directories, inner ones first: the copy has changed both."""
    for path, mode, mtime in reversed(directories):
        directory = f"{work}/{path}"
        os.chmod(directory, mode & 0o1777)  # noqa: PTH101 - there may be thousands
        os.utime(directory, ns=(mtime, mtime))
