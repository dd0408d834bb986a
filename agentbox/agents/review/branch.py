"""Making a branch: a copy of the workspace for one agent, by as many programs as there are processors."""

import marshal
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentbox.agents import home
from agentbox.agents.review import copying, gitdir, listing
from agentbox.agents.review.copying import Copier, Row
from agentbox.agents.review.listing import Start

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
        rows, found = _copy(workspace, work, told)
        objects = gitdir.make(workspace, work, found, *who)
        _settle_folders(work, rows)
        rows += (Row(path, "g") for path in found)
        begun = Start(workspace=str(workspace), rows={row.path: row for row in rows}, objects=objects)
        listing.write(start, begun)
    except BaseException:
        home.remove(work)
        raise
    return Branch(work=work, objects=objects, size=begun.size)


def _copy(workspace: Path, work: Path, told: Told) -> tuple[list[Row], list[str]]:
    shares = min(MOST_SHARES, len(os.sched_getaffinity(0)))
    if not _few(workspace):
        return _by_programs(workspace, work, shares, told)
    with ExitStack() as opened:
        ends = [os.open(path, _FOLDER) for path in (workspace, work)]
        for descriptor in ends:
            opened.callback(os.close, descriptor)
        copier = Copier(ends[0], ends[1])
        copier.copy()
    return copier.rows, copier.skipped


def _few(workspace: Path) -> bool:
    count = 0
    for _, folders, files in os.walk(workspace):
        count += len(folders) + len(files)
        if count > FEW:
            return False
    return True


def _by_programs(workspace: Path, work: Path, shares: int, told: Told) -> tuple[list[Row], list[str]]:
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
    rows: list[Row] = []
    found: list[str] = []
    for answer in answers:
        if not isinstance(answer, tuple):
            number = answer if isinstance(answer, int) else 0
            raise OSError(number, os.strerror(number) if number else "the copying program ended early")
        rows += (Row(*row) for row in answer[0])
        found = answer[1]  # each share found them all
    return rows, found


def _share(workspace: Path, work: Path, number: int, shares: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-X", "utf8", copying.__file__, str(workspace), str(work), str(number), str(shares)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )  # fmt: skip


def _settle_folders(work: Path, rows: list[Row]) -> None:
    """Modes and times of folders, inner ones first: what was made in them has changed both."""
    for row in sorted((one for one in rows if one.kind == "d"), key=lambda one: one.path, reverse=True):
        place = work / row.path
        place.chmod(row.mode & 0o1777)
        os.utime(place, ns=(row.mtime, row.mtime))
