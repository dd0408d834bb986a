"""Making a branch: a copy of the workspace for one agent, by as many programs as there are processors."""

import json
import marshal
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentbox.agents.review import copying, git_dir, listing
from agentbox.agents.review.copying import Copier
from agentbox.agents.runs import home
from agentbox.core.linux import opening
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.opening import UNBOUNDED, Boundary

if TYPE_CHECKING:
    from agentbox.agents.review.copying import Copied

FEW: Final = 400  # entries; up to here a thread of this program is quicker than starting others
MOST_SHARES: Final = 4
WORK: Final = "work"

Told = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """`work` is the copy, which took about `size` bytes at the start; `objects` is what else its repository needs to read."""

    work: Path
    objects: tuple[str, ...] = ()
    size: int = 0


def make(
    workspace: Path, folder: Path, start: Path, who: tuple[str, str], told: Told = lambda _: None,
    limit: Boundary = UNBOUNDED,
) -> Branch:  # fmt: skip
    """The branch in `folder`, made once: with the list at `start` it is whole. `who`: name and address for commits.

    `told` is given how many files are done, now and then, from any thread. The workspace is opened within the `limit`, and
    by that descriptor alone from then on. Blocks. Raises OSError; then nothing is left.
    """
    work = folder / WORK
    known = listing.read(start)
    if known is not None and work.is_dir():
        return Branch(work=work, objects=known.objects, size=known.size)
    home.remove(work)
    try:
        work.mkdir(mode=0o700, parents=True)
        with opening.folder(str(workspace), limit) as source, opening.folder(str(work)) as target:
            lines, folders, blocks, found = _copy(source, target, told)
            objects = git_dir.make(source, str(workspace), target, found, *who)
        _settle_folders(str(work), folders)
        lines += (json.dumps((path, "g")) for path in found)
        listing.write(start, str(workspace), objects, lines)
    except BaseException:
        home.remove(work)
        raise
    return Branch(work=work, objects=objects, size=listing.size_of(len(lines), blocks))


def _copy(source: int, target: int, told: Told) -> "Copied":
    shares = min(MOST_SHARES, len(os.sched_getaffinity(0)))
    if not _few(source):
        return _by_programs(source, target, shares, told)
    copier = Copier(source, target)
    copier.copy()
    return copier.copied()


def _few(source: int) -> bool:
    count, ahead = 0, [""]
    while ahead:
        path = ahead.pop()
        with suppress(OSError), _opened(source, path) as here, os.scandir(here) as entries:
            for entry in entries:
                count += 1
                if count > FEW:
                    return False
                if entry.is_dir(follow_symlinks=False):
                    ahead.append(f"{path}/{entry.name}".lstrip("/"))
    return True


@contextmanager
def _opened(root: int, path: str) -> Iterator[int]:
    descriptor = open_beneath(root, path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _by_programs(source: int, target: int, shares: int, told: Told) -> "Copied":
    done = [0] * shares
    answers: list[object] = [None] * shares

    def follow(number: int, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        with closing(process.stdout) as out:
            while (line := out.readline()).strip():
                done[number] = int(line)
                told(sum(done))
            data = out.read()
        answers[number] = marshal.loads(data) if process.wait() == 0 and data else 0

    processes = [_share(source, target, number, shares) for number in range(shares)]
    threads = [threading.Thread(target=follow, args=pair) for pair in enumerate(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines: list[str] = []
    folders: list[tuple[str, int, int]] = []
    blocks, found = 0, []
    for answer in answers:
        if not isinstance(answer, tuple):
            number = answer if isinstance(answer, int) else 0
            raise OSError(number, os.strerror(number) if number else "the copying program ended early")
        lines += answer[0]
        folders += answer[1]
        blocks += answer[2]
        found = answer[3]  # each share found them all
    return lines, folders, blocks, found


def _share(source: int, target: int, number: int, shares: int) -> "subprocess.Popen[bytes]":
    words = map(str, (source, target, number, shares))
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-X", "utf8", copying.__file__, *words], pass_fds=(source, target),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )  # fmt: skip


def _settle_folders(work: str, folders: list[tuple[str, int, int]]) -> None:
    """Modes and times of folders, inner ones first: what was made in them has changed both."""
    for path, mode, mtime in reversed(folders):
        place = f"{work}/{path}"
        os.chmod(place, mode & 0o1777)  # noqa: PTH101 - there may be thousands
        os.utime(place, ns=(mtime, mtime))
