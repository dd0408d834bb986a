"""Copies the commits of a branch into a repository of verified objects."""

from typing import Final

from agentbox.agents.review.commits.confined.git import Git, GitFailed, TooMuch

MAX_COMMITS: Final = 1_000
MAX_OBJECTS: Final = 500_000
MAX_BYTES: Final = 256 << 20  # of all new objects, unpacked; and of the pack


def count_commits(git: Git, tip: str, start: str) -> int:
    """Raises GitFailed, TooMuch."""
    count = int(git.run("rev-list", "--count", f"--max-count={MAX_COMMITS + 1}", *span(tip, start)))
    if count > MAX_COMMITS:
        raise TooMuch(f"more than {MAX_COMMITS:,} commits")
    return count


def copy_objects(source: Git, target: Git, tip: str, start: str) -> None:
    """Every object of the commits, checked as by `git fsck --strict`: its id is computed from its
    content, and everything that it names is there too. Raises GitFailed, TooMuch."""
    ids = source.run("rev-list", "--objects", "--no-object-names", *span(tip, start))
    _check_sizes(source, ids)
    source.pipe(
        ("pack-objects", "--stdout", "-q", "--delta-base-offset"),
        ids,
        target,
        ("index-pack", "--strict", "--stdin", f"--max-input-size={MAX_BYTES}"),
    )
    target.run("rev-list", "--objects", "--quiet", *span(tip, start))


def span(tip: str, start: str) -> tuple[str, ...]:
    """The commits from `start` to `tip`, for git."""
    return (tip, f"^{start}") if start else (tip,)


def _check_sizes(source: Git, ids: bytes) -> None:
    if ids.count(b"\n") > MAX_OBJECTS:
        raise TooMuch(f"more than {MAX_OBJECTS:,} objects")
    listed = source.run("cat-file", "--batch-check=%(objectsize)", "--buffer", data=ids)
    size = 0
    for line in listed.split(b"\n")[:-1]:
        if not line.isdigit():
            raise GitFailed(f"object {line.decode('ascii', 'replace')}")
        size += int(line)
    if size > MAX_BYTES:
        raise TooMuch(f"more than {MAX_BYTES >> 20} MiB in new objects")
