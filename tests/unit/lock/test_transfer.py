"""Downloads into the cache: complete, verified, resumed, one writer at a time."""

import hashlib
import json
import threading
from io import StringIO
from pathlib import Path

import pytest

from agentbox.core.progress import JsonProgress, NullProgress
from agentbox.host.packages.errors import FetchError, FileMissingError, NoNetworkError
from agentbox.host.packages.origin import FileOrigin
from agentbox.host.packages.transfer.cache import Cache, describe_difference
from agentbox.host.packages.transfer.download import Downloads
from agentbox.host.packages.transfer.http_client import HttpClient
from agentbox.host.packages.transfer.transfer import Transfer
from agentbox.plan.lockfile.model import LockEntry

DATA = bytes(range(256)) * 1000


def entry(data: bytes, name: str = "file") -> LockEntry:
    return LockEntry(
        name=name, version="1", file=name, size=len(data), sha256=hashlib.sha256(data).hexdigest()
    )


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "files")


def origin(tmp_path: Path, data: bytes, wanted: LockEntry) -> FileOrigin:
    served = tmp_path / "served" / wanted.file
    served.parent.mkdir(exist_ok=True)
    served.write_bytes(data)
    return FileOrigin(wanted, url=served.as_uri(), client=HttpClient({}))


def moved(made: FileOrigin, cache: Cache) -> int:
    """Runs a transfer and returns the number of reported bytes."""
    told: list[int] = []
    Transfer(made, cache, threading.Event(), told.append).run()
    return sum(told)


def test_a_file_arrives(tmp_path: Path, cache: Cache) -> None:
    """The file is stored under its digest, nothing else remains, and every byte was reported
    once.
    """
    wanted = entry(DATA)
    assert moved(origin(tmp_path, DATA, wanted), cache) == len(DATA)
    assert [path.name for path in cache.directory.iterdir()] == [wanted.sha256]
    assert cache.has(wanted)


def test_a_broken_off_file_goes_on(tmp_path: Path, cache: Cache) -> None:
    """Existing bytes are not requested again: here the server has no others."""
    wanted = entry(DATA)
    with cache.partial_file(wanted) as part:
        part.write_bytes(DATA[:1000])
    assert moved(origin(tmp_path, bytes(1000) + DATA[1000:], wanted), cache) == len(DATA)
    assert cache.path(wanted).read_bytes() == DATA


@pytest.mark.parametrize("left", [b"other" * 99, DATA + b"longer"])
def test_a_wrong_beginning_is_thrown_away(tmp_path: Path, cache: Cache, left: bytes) -> None:
    """If the partial file of an earlier run is wrong, the download starts from the beginning."""
    wanted = entry(DATA)
    with cache.partial_file(wanted) as part:
        part.write_bytes(left)
    moved(origin(tmp_path, DATA, wanted), cache)
    assert cache.has(wanted)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (DATA[:-1] + b"!", "its SHA-256 is"),
        (DATA + b"!", "its size is 256001, the lock has 256000"),
        (b"", "its size is 0"),
    ],
)
def test_other_bytes_are_refused(tmp_path: Path, cache: Cache, data: bytes, why: str) -> None:
    """A file with another digest or size is rejected by name and deleted."""
    with pytest.raises(FetchError, match=f"cannot accept file: {why}") as caught:
        moved(origin(tmp_path, data, entry(DATA)), cache)
    assert caught.value.exit_code == 4
    assert list(cache.directory.iterdir()) == []


def test_an_endless_file_ends(tmp_path: Path, cache: Cache) -> None:
    """The transfer ends once the server has sent more than the locked size."""
    with pytest.raises(FetchError, match="its size is"):
        moved(FileOrigin(entry(DATA), url=Path("/dev/zero").as_uri(), client=HttpClient({})), cache)


def test_programs_of_the_host(tmp_path: Path, cache: Cache) -> None:
    """A file fetched by a program of the host is verified like any other."""
    wanted = entry(DATA)

    def make(target: Path) -> None:
        target.write_bytes(DATA)

    assert moved(FileOrigin(wanted, make=make), cache) == len(DATA)
    with pytest.raises(FetchError, match="cannot accept"):
        moved(FileOrigin(entry(b"other"), make=make), cache)


def test_decayed_files_are_deleted(cache: Cache) -> None:
    """A cached file is hashed again before use."""
    wanted = entry(DATA)
    cache.path(wanted).write_bytes(DATA[:-1])
    assert "its size is" in describe_difference(wanted, cache.path(wanted))
    assert not cache.has(wanted)
    assert not cache.path(wanted).exists()


def test_one_writer_at_a_time(tmp_path: Path, cache: Cache) -> None:
    """A second transfer of the same file waits, then uses the stored file."""
    wanted, calls = entry(DATA), []

    def make(target: Path) -> None:
        calls.append(target)
        target.write_bytes(DATA)

    with cache.partial_file(wanted):
        threads = [
            threading.Thread(target=moved, args=(FileOrigin(wanted, make=make), cache))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        assert calls == []
    for thread in threads:
        thread.join(20)
    assert len(calls) == 1
    assert [path.name for path in cache.directory.iterdir()] == [wanted.sha256]


def test_a_batch(tmp_path: Path, cache: Cache) -> None:
    """All files of a batch arrive, reported as one stage with their sum."""
    wanted = [entry(DATA + bytes([number]), f"file{number}") for number in range(20)]
    said = StringIO()
    batch = [origin(tmp_path, DATA + bytes([number]), row) for number, row in enumerate(wanted)]
    Downloads(cache, JsonProgress(said), jobs=4).run("some", batch)
    assert all(cache.has(row) for row in wanted)
    last = json.loads(said.getvalue().splitlines()[-1])
    total = 20 * (len(DATA) + 1)
    assert last == {"stage": "some", "done": total, "total": total, "state": "done"}


def test_a_batch_ends_with_its_first_failure(tmp_path: Path, cache: Cache) -> None:
    """One rejected file ends the batch with its message; files that arrived before stay."""
    good, bad = entry(DATA, "good"), entry(DATA + b"!", "bad")
    with pytest.raises(FetchError, match="cannot accept bad"):
        Downloads(cache, NullProgress(), jobs=1).run(
            "x", [origin(tmp_path, b"z", bad), origin(tmp_path, DATA, good)]
        )
    Downloads(cache, NullProgress(), jobs=1).run("x", [origin(tmp_path, DATA, good)])
    Downloads(cache, NullProgress(), jobs=1).run("x", [])
    assert cache.has(good)


def test_no_server(cache: Cache) -> None:
    """An unreachable server and a missing file are different errors."""
    with pytest.raises(NoNetworkError):
        moved(FileOrigin(entry(DATA), url="http://127.0.0.1:9/file", client=HttpClient({})), cache)
    assert issubclass(FileMissingError, FetchError)
