"""Creates the `.git` of a branch: it borrows the objects of the workspace's repository and copies
its index and refs.

Runs nothing of the repository, and copies nothing that git would run: no hook, filter, alias or
path. Names and formats: gitrepository-layout(5), git-config(1).
"""

import configparser
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import PurePosixPath
from typing import Final

from agentbox.agents.review.copying import GIT, TreeCopier
from agentbox.core.linux.openat2 import open_beneath

_FILES: Final = (
    *(
        "HEAD",
        "index",
        "packed-refs",
        "shallow",
        "ORIG_HEAD",
        "MERGE_HEAD",
        "MERGE_MSG",
        "MERGE_MODE",
    ),
    *(
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
        "SQUASH_MSG",
        "info/exclude",
        "info/attributes",
        "info/sparse-checkout",
    ),
)
_DIRECTORIES: Final = ("refs", "reftable")
_SHARED_INDEX: Final = re.compile(r"sharedindex\.[0-9a-f]{40,64}")
_RETAINED_SETTINGS: Final[Mapping[str, frozenset[str]]] = {
    "core.filemode": frozenset({"true", "false"}),
    "core.symlinks": frozenset({"true", "false"}),
    "core.ignorecase": frozenset({"true", "false"}),
    "core.autocrlf": frozenset({"true", "false", "input"}),
    "core.eol": frozenset({"lf", "crlf", "native"}),
    "core.sparsecheckout": frozenset({"true", "false"}),
    "core.sparsecheckoutcone": frozenset({"true", "false"}),
    "core.repositoryformatversion": frozenset({"0", "1"}),
    "extensions.objectformat": frozenset({"sha1", "sha256"}),
    "extensions.refstorage": frozenset({"files", "reftable"}),
}
_SAFE_VALUE: Final = re.compile(r"[^\x00-\x1f\x7f\"\\]{1,200}")
_MAX_TEXT: Final = 1 << 20  # bytes of a config, alternates or .git file
_MAX_DEPTH: Final = 5  # nested alternates, as in git


def create(
    workspace: int, workspace_path: str, branch: int, git_paths: list[str], name: str, email: str
) -> tuple[str, ...]:
    """`workspace` (at `workspace_path`) and `branch` are descriptors, below which no link is
    followed. `git_paths`: paths of the workspace named .git. Returns the object directories that
    the branch borrows, to be granted for reading. Incomplete repositories (a linked worktree, a
    pointer out of the workspace) are skipped, so git finds none there. `name` and `email` of the
    committer are used if the repository sets none. Raises OSError."""
    borrowed: dict[str, None] = {}
    for path in git_paths:
        repository = _find_repository(workspace, path)
        if repository is None:
            continue
        with ExitStack() as stack:
            source = _open_directory(workspace, repository, stack)
            if source is None or not _is_repository(source):
                continue
            objects = [
                str(PurePosixPath(workspace_path, relative))
                for relative in _object_dirs(workspace, workspace_path, f"{repository}/objects")
            ]
            git_dir = _make_directory(branch, repository, stack)
            _fill(source, git_dir, objects, stack)
            parent = PurePosixPath(path).parent
            depth = "" if repository == path else os.path.relpath(f"/{parent}", f"/{repository}")
            _write_file(
                git_dir, "config", _build_config(_read_text(source, "config"), name, email, depth)
            )
            if repository != path:
                parent_fd = _make_directory(branch, str(parent), stack)
                _write_file(
                    parent_fd, GIT, f"gitdir: {os.path.relpath(f'/{repository}', f'/{parent}')}\n"
                )
            borrowed |= dict.fromkeys(objects)
    return tuple(borrowed)


def object_format(branch: int) -> str:
    """Of the repository at the root of a branch that `create` has just made: sha1 or sha256."""
    values = _parse_config(_read_text(branch, f"{GIT}/config"))
    return values.get("extensions.objectformat", "sha1")


def _find_repository(workspace: int, path: str) -> str | None:
    """Path of the repository of that .git, below the workspace: itself, or the target of a .git
    file."""
    with ExitStack() as stack:
        if _open_directory(workspace, path, stack) is not None:
            return path
    keyword, _, target = _read_text(workspace, path).strip().partition(" ")
    if keyword != "gitdir:" or not target or target.startswith("/"):
        return None
    resolved = os.path.normpath(PurePosixPath(path).parent / target)
    return (
        resolved if not resolved.startswith("..") and GIT in PurePosixPath(resolved).parts else None
    )


def _open_directory(root: int, path: str, stack: ExitStack) -> int | None:
    """A descriptor of that directory, opened without following links. None if it is not a
    directory."""
    try:
        descriptor = open_beneath(root, path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor


def _make_directory(root: int, path: str, stack: ExitStack) -> int:
    """Like `_open_directory`, but creates it if missing. Raises OSError if something else is
    there."""
    for name in PurePosixPath(path).parts:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=root)
        root = open_beneath(root, name, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, root)
    return root


def _write_file(directory: int, name: str, data: bytes | str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=directory), "wb") as stream:
        stream.write(os.fsencode(data))


def _is_repository(source: int) -> bool:
    kinds = {"HEAD": stat.S_ISREG, "objects": stat.S_ISDIR, "refs": stat.S_ISDIR}
    try:
        is_valid = all(
            has_kind(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode)
            for name, has_kind in kinds.items()
        )
    except OSError:
        return False
    return is_valid and not _exists(source, "commondir")


def _exists(source: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=source, follow_symlinks=False)
    except OSError:
        return False
    return True


def _object_dirs(workspace: int, workspace_path: str, first: str) -> list[str]:
    """The object directory and its alternates, recursively, as paths in the workspace; others are
    ignored."""
    directories, pending = [first], [first]
    for _ in range(_MAX_DEPTH):
        pending = [
            path
            for directory in pending
            for path in _alternates(workspace, workspace_path, directory)
            if path not in directories
        ]
        with ExitStack() as stack:
            pending = [
                path for path in pending if _open_directory(workspace, path, stack) is not None
            ]
        directories += pending
    return directories


def _alternates(workspace: int, workspace_path: str, directory: str) -> Iterator[str]:
    for line in _read_text(workspace, f"{directory}/info/alternates").splitlines():
        if line and not line.startswith("#"):
            resolved = PurePosixPath(
                os.path.normpath(PurePosixPath(workspace_path, directory, line))
            )
            if resolved.is_relative_to(workspace_path):
                yield str(resolved.relative_to(workspace_path))


def _fill(source: int, git_dir: int, objects: list[str], stack: ExitStack) -> None:
    info, objects_info, _, _ = (
        _make_directory(git_dir, directory, stack)
        for directory in ("info", "objects/info", "objects/pack", "refs")
    )
    with os.scandir(source) as entries:
        shared = [item.name for item in entries if _SHARED_INDEX.fullmatch(item.name)]
    for name in (*_FILES, *shared):
        data = _read_bytes(source, name)
        if data is not None:
            _write_file(
                info if name.startswith("info/") else git_dir, PurePosixPath(name).name, data
            )
    for name in _DIRECTORIES:
        if (old := _open_directory(source, name, stack)) is not None:
            TreeCopier(old, _make_directory(git_dir, name, stack)).copy()
    _write_file(objects_info, "alternates", "".join(f"{item}\n" for item in objects))


def _read_bytes(source: int, path: str, max_bytes: int = 1 << 30) -> bytes | None:
    """None if it is not a readable file, is larger, or is reached through a link."""
    try:
        descriptor = open_beneath(source, path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        stats = os.fstat(descriptor)
        return stream.read() if stat.S_ISREG(stats.st_mode) and stats.st_size <= max_bytes else None


def _read_text(source: int, path: str) -> str:
    return (_read_bytes(source, path, _MAX_TEXT) or b"").decode("utf-8", "surrogateescape")


def _build_config(original: str, name: str, email: str, worktree: str) -> str:
    """The settings that git needs to read index and objects, the committer, and the comparison of
    stat data by time and size alone, since those of the index are of the workspace."""
    values = _parse_config(original)
    retained = {
        key: values[key].lower()
        for key, allowed in _RETAINED_SETTINGS.items()
        if values.get(key, "").lower() in allowed
    }
    core = {
        "bare": "false",
        "logallrefupdates": "true",
        "checkstat": "minimal",
        "trustctime": "false",
    }
    core |= {"worktree": worktree} if worktree else {}
    user = {"name": name, "email": email}
    sections: dict[str, dict[str, str]] = {"core": core, "gc": {"auto": "0"}, "user": user}
    for key, value in retained.items():
        section, _, option = key.partition(".")
        sections.setdefault(section, {})[option] = value
    for option in user:
        if _SAFE_VALUE.fullmatch(configured := values.get(f"user.{option}", "")):
            user[option] = configured
    lines = []
    for section, settings in sections.items():
        lines += [f"[{section}]", *(f'\t{word} = "{value}"' for word, value in settings.items())]
    return "\n".join(lines) + "\n"


def _parse_config(text: str) -> Mapping[str, str]:
    """`section.key` -> value of a config, lower case; empty if it cannot be parsed."""
    parser = configparser.RawConfigParser(
        strict=False,
        allow_no_value=True,
        delimiters=("=",),
        comment_prefixes=("#", ";"),
        empty_lines_in_values=False,
    )
    try:
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    except configparser.Error:
        return {}
    return {
        f"{section.lower()}.{option}": (value or "true").strip().strip('"')
        for section in parser.sections()
        for option, value in parser.items(section)
    }
