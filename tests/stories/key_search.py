"""Whether agents have a key: environment and writable memory of each of their processes, as root of
the machine sees them. `python key_search.py FILE PID`: FILE has the key; PID is the first process
of a container, to search its agents."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 24
_TOKEN = b"AGENTBOX_TOKEN="


@dataclass(frozen=True)
class Found:
    """Of `searched` processes `keys` had the key; `own` had their own token, which the same search must find."""

    searched: int
    keys: int
    own: int


def agents_of(container: int) -> Iterator[Path]:
    """The /proc directories of the agents' processes in that container."""
    space = Path(f"/proc/{container}/ns/pid").readlink()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "ns/pid").readlink() == space and _TOKEN in (
                process / "environ"
            ).read_bytes():
                yield process


def search(processes: Iterator[Path], key: bytes) -> Found:
    """Searches for the key, and for each process's own token as a control. A process that ends
    meanwhile does not count."""
    searched = keys = own = 0
    for process in processes:
        with suppress(OSError):
            around = (process / "environ").read_bytes()
            token = next(row for row in around.split(b"\0") if row.startswith(_TOKEN)).removeprefix(
                _TOKEN
            )
            has, had = key in around or in_memory(process, key), in_memory(process, token)
            if not (has or had) and (process / "environ").read_bytes() != around:
                continue  # it has ended, or is another program now
            searched, keys, own = searched + 1, keys + has, own + had
    return Found(searched, keys, own)


def in_memory(process: Path, wanted: bytes) -> bool:
    """Whether a process has those bytes in writable memory. Raises OSError."""
    rows = (line.split() for line in (process / "maps").read_text().splitlines())
    spans = [row[0].split("-") for row in rows if row[1].startswith("rw")]
    with (process / "mem").open("rb", buffering=0) as memory:
        for start, end in ((int(a, 16), int(b, 16)) for a, b in spans):
            for at in range(start, end, _CHUNK):
                with suppress(OSError):  # a page that was never touched
                    if wanted in os.pread(memory.fileno(), min(_CHUNK + len(wanted), end - at), at):
                        return True
    return False


if __name__ == "__main__":
    found = search(agents_of(int(sys.argv[2])), Path(sys.argv[1]).read_bytes().strip())
    print(
        f"processes of agents: {found.searched}; with the key: {found.keys}; with their own token: {found.own}"
    )
