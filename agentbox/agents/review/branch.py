"""Making a branch: a copy of the workspace for one agent, by as many programs as there are processors."""

import json
import marshal
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentbox.agents import home
from agentbox.agents.review import copying, gitdir, listing
from agentbox.agents.review.copying import Copier

if TYPE_CHECKING:
    from agentbox.agents.review.copying import Copied

FEW: Final = 400  # entries; up to here a thread of this program is quicker than starting others
MOST_SHARES: Final = 4
WORK: Final = "work"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

Told = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """`work` is the copy, which took about `size` bytes at the start; `objects` is what else its repository needs to read."""

    work: Path
    objects: tuple[str, ...] = ()
    size: int = 0


def make(workspace: Path, folder: Path, start: Path, who: tuple[str, str], told: Told = lambda _: None) -> Branch:
    """The branch in `folder`, made once: with the list at `start` it is whole. `who`: name and address for commits.

    `told` is given how many files are done, now and then, from any thread. Blocks. Raises OSError; then nothing is left.
    """
    work = folder / WORK
    known = listing.read(start)
    if known is not None and work.is_dir():
        return Branch(work=work, objects=known.objects, size=known.size)
    home.remove(work)
    try:
        work.mkdir(mode=0o700, parents=True)
        lines, folders, blocks, found = _copy(workspace, work, told)
        objects = gitdir.make(workspace, work, found, *who)
        _settle_folders(str(work), folders)
        lines += (json.dumps((path, "g")) for path in found)
        listing.write(start, str(workspace), objects, lines)
    except BaseException:
        home.remove(work)
        raise
    return Branch(work=work, objects=objects, size=listing.size_of(len(lines), blocks))


def _copy(workspace: Path, work: Path, told: Told) -> "Copied":
    shares = min(MOST_SHARES, len(os.sched_getaffinity(0)))
    if not _few(workspace):
        return _by_programs(workspace, work, shares, told)
    with ExitStack() as opened:
        ends = [os.open(path, _FOLDER) for path in (workspace, work)]
        for descriptor in ends:
            opened.callback(os.close, descriptor)
        copier = Copier(ends[0], ends[1])
        copier.copy()
    return copier.copied()


def _few(workspace: Path) -> bool:
    count = 0
    for _, folders, files in os.walk(workspace):
        count += len(folders) + len(files)
        if count > FEW:
            return False
    return True


def _by_programs(workspace: Path, work: Path, shares: int, told: Told) -> "Copied":
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

    processes = [_share(workspace, work, number, shares) for number in range(shares)]
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


def _share(workspace: Path, work: Path, number: int, shares: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-X", "utf8", copying.__file__, str(workspace), str(work), str(number), str(shares)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )  # fmt: skip


def _settle_folders(work: str, folders: list[tuple[str, int, int]]) -> None:
    """Modes and times of folders, inner ones first: what was made in them has changed both."""
    for path, mode, mtime in reversed(folders):
        place = f"{work}/{path}"
        os.chmod(place, mode & 0o1777)  # noqa: PTH101 - there may be thousands
        os.utime(place, ns=(mtime, mtime))
