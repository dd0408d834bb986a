"""What is staged of trees that agents made: deep, long, unreadable, many."""

import json
import os
from pathlib import Path

import pytest

from agentbox.api.backups.staging import MAX_CHANGED, _names, remove_staged
from agentbox.core.files.copying import copy_tree, file_sizes
from agentbox.core.files.walking import MAX_DEPTH, MAX_PATH

NOBODY = 65534


def nest(folder: Path, name: str, depth: int) -> None:
    """`depth` folders one in another, each with a file: longer than a path may be."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=descriptor)
        child = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = child
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=descriptor))
    os.close(descriptor)


def unnest(folder: Path, name: str) -> None:
    """Removes these, one by one: `rmtree`, which pytest calls, recurses."""
    while (folder / name).exists():
        below = folder / name / name
        if below.exists():
            below.rename(folder / "next")
        (folder / name / "file").unlink()
        (folder / name).rmdir()
        if (folder / "next").exists():
            (folder / "next").rename(folder / name)


@pytest.mark.parametrize(("name", "depth"), [("d", 1500), ("n" * 250, 30)], ids=["deep", "long"])
def test_nested_folders_do_not_fail_a_copy(tmp_path: Path, name: str, depth: int) -> None:
    """What is too deep is named once, at its top; all above it is copied, and can be removed."""
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.mkdir()
    (source / "kept").write_bytes(b"kept")
    nest(source, name, depth)
    try:
        (left,) = [path for path in copy_tree(source, copy) if not path.endswith("/file")]
        assert left.count("/") == MAX_DEPTH or len(left) > MAX_PATH
        assert (copy / "kept").read_bytes() == b"kept"
        above = os.path.dirname(os.path.dirname(left))  # noqa: PTH120 - of text
        assert (copy / above / "file").exists()
        sizes = file_sizes(source)
        assert f"{above}/file" in sizes
        assert f"{left}/file" not in sizes
        remove_staged(copy)
        assert not copy.exists()
    finally:
        unnest(source, name)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A file and a folder of mode 000, for a user whom modes bind; the rest is copied. A read-only
    folder of the copy is removed with what it holds."""
    source = tmp_path / "source"
    for name in ("closed", "open", "read-only"):
        (source / name).mkdir(parents=True)
        (source / name / "file").write_bytes(b"text")
    (source / "secret").write_bytes(b"text")
    (source / "secret").chmod(0)
    (source / "closed").chmod(0)
    (source / "read-only").chmod(0o500)
    result = _as_nobody(tmp_path)
    assert result == {
        "changed": ["closed", "secret"],
        "copied": ["open/file", "read-only/file"],
        "sizes": ["open/file", "read-only/file", "secret"],
        "removed": True,
    }


def _as_nobody(folder: Path) -> object:
    """Copies `source` in a child; below its own folder, since others' may be closed to it."""
    if os.geteuid() == 0:
        for below, names, files in os.walk(folder):
            for path in (below, *(f"{below}/{name}" for name in (*names, *files))):
                os.chown(path, NOBODY, NOBODY)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(writing, json.dumps(_copied(Path("source"), Path("copy"))).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    assert answer, "the child failed"
    return json.loads(answer)


def _copied(source: Path, copy: Path) -> dict[str, object]:
    changed = copy_tree(source, copy)
    copied = sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file())
    remove_staged(copy)
    return {
        "changed": sorted(changed),
        "copied": copied,
        "sizes": sorted(file_sizes(source)),
        "removed": not copy.exists(),
    }


def test_names_of_what_changed_fit_into_the_record() -> None:
    """A restore reads 1 MiB of it; bytes that are not UTF-8 can be in JSON."""
    assert _names([os.fsdecode(b"b\xff"), "a"]) == ("a", r"b\xff")
    names = _names([f"{number:0200}" for number in range(10_000)])
    assert sum(map(len, names[:-1])) <= MAX_CHANGED
    assert names[-1] == f"({10_000 - len(names) + 1} more)"
