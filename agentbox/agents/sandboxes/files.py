"""Files of a running sandbox, read and written for the operator: beneath its branch and its
temporary directory only. Its programs may change every name at the same time, so each path is
opened relative to its root by openat2(2), which follows no link, and new content gets its name by a
rename."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Final

from agentbox.contracts.sandboxes import FileChunk
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.slot_errors import (
    AdapterError,
    BackendError,
    FileTooLarge,
    NotFound,
    PathOutside,
    ValidationError,
    disk_full_error,
    is_disk_full,
)

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # a fifo must not block
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_STAGING: Final = ".agentbox-put-"  # of a file until it has its name
_PIECE: Final = 1 << 20
_OUTSIDE: Final = (errno.ELOOP, errno.EXDEV)
_MAX_PATH: Final = 4096  # bytes

MAX_UPLOADS = 8  # files that wait for their last part


class SandboxFiles:
    """`roots`: directories by the first name of a path. A call may move `max_file` bytes. Blocks.
    Raises NotFound, PathOutside, FileTooLarge, ValidationError."""

    def __init__(self, roots: Mapping[str, Path], max_file: int) -> None:
        self._roots, self._max_file = roots, max_file

    def read(self, path: str, offset: int, size: int) -> FileChunk:
        """At most `size` bytes; `tag` differs once the file was replaced or changed."""
        root, names = self._split(path)
        with self._translate(path), _opened(root, names, _READ) as fd:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise _invalid(path, "is not a regular file")
            self.check_size(found.st_size)
            tag = f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"
            return FileChunk(data=os.pread(fd, size, offset), size=found.st_size, tag=tag)

    def write(self, path: str, upload: Path, data: bytes, *, last: bool) -> None:
        """Adds to the file `upload`; the `last` part puts all of it in place of the file, and makes
        missing directories."""
        root, names = self._split(path)
        with self._translate(path):
            staged = upload.stat().st_size if upload.exists() else 0
            if staged + len(data) > self._max_file:
                upload.unlink(missing_ok=True)
            self.check_size(staged + len(data))
            if not last:
                with upload.open("ab") as stream:
                    stream.write(data)
                return
            with self._parent(root, names) as parent:
                _put(names[-1], parent, chain(_pieces(upload), (data,)))
        upload.unlink(missing_ok=True)

    def remove(self, path: str) -> None:
        """A file, a link (not its target) or an empty directory."""
        root, names = self._split(path)
        with self._translate(path), _opened(root, names[:-1], _DIRECTORY) as parent:
            try:
                os.unlink(names[-1], dir_fd=parent)
            except IsADirectoryError:
                os.rmdir(names[-1], dir_fd=parent)

    def check_size(self, size: int) -> None:
        """Raises FileTooLarge."""
        if size > self._max_file:
            raise FileTooLarge(
                f"cannot move a file of {size} bytes: sandboxes.max_file is {self._max_file}",
                hint="raise it in agentbox.toml, or move the file in parts",
                observed=size,
                cap=self._max_file,
            )

    def _split(self, path: str) -> tuple[Path, list[str]]:
        top, _, rest = path.lstrip("/").partition("/")
        names = [name for name in rest.split("/") if name not in ("", ".")]
        if top not in self._roots or ".." in names:
            known = " or ".join(f"{name}/" for name in self._roots)
            raise PathOutside(
                f"cannot use {path!r}: it must lead into {known}",
                hint="a path begins with workspace/ or tmp/",
                path=path,
            )
        if not names:
            raise _invalid(path, "names no file")
        if "\0" in path or len(os.fsencode(path)) > _MAX_PATH:
            raise _invalid(path, "is not a path")
        return self._roots[top], names

    @contextmanager
    def _parent(self, root: Path, names: list[str]) -> Iterator[int]:
        """The directory of the file. Missing directories are made, one by one."""
        with _opened(root, [], _DIRECTORY) as top:
            parent = os.dup(top)
            try:
                for name in names[:-1]:
                    try:
                        following = open_beneath(parent, name, _DIRECTORY)
                    except FileNotFoundError:
                        os.mkdir(name, 0o755, dir_fd=parent)
                        following = open_beneath(parent, name, _DIRECTORY)
                    os.close(parent)
                    parent = following
                yield parent
            finally:
                os.close(parent)

    @contextmanager
    def _translate(self, path: str) -> Iterator[None]:
        try:
            yield
        except AdapterError:
            raise
        except OSError as error:
            raise _to_slot_error(path, error) from error


def _to_slot_error(path: str, error: OSError) -> AdapterError:
    if error.errno in _OUTSIDE:
        return PathOutside(f"cannot use {path!r}: a link is on the way", path=path)
    if error.errno == errno.ENOENT:
        return NotFound(f"cannot find {path!r}", resource="file", id=path)
    if is_disk_full(error):
        return disk_full_error(f"write {path!r}")
    expected = (errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EACCES, errno.ENAMETOOLONG)
    if error.errno in (*expected, errno.EEXIST, errno.ENXIO, errno.EPERM):
        return _invalid(path, os.strerror(error.errno).lower())
    return BackendError(
        f"cannot use {path!r}: {error.strerror}", slot="orchestrator", impl="local-process"
    )


def _invalid(path: str, detail: str) -> ValidationError:
    return ValidationError(
        f"cannot use {path!r}: {detail}", errors=[{"pointer": "/path", "detail": detail}]
    )


@contextmanager
def _opened(root: Path, names: list[str], flags: int) -> Iterator[int]:
    """A path beneath `root`, which only the box can replace."""
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fd = open_beneath(top, "/".join(names), flags)
    finally:
        os.close(top)
    try:
        yield fd
    finally:
        os.close(fd)


def _put(name: str, parent: int, pieces: Iterable[bytes]) -> None:
    """Writes under a name of its own, then renames: a link of that name is replaced, not
    followed."""
    staging = _STAGING + secrets.token_hex(8)
    fd = os.open(staging, _CREATE, 0o644, dir_fd=parent)
    try:
        for piece in pieces:
            _write_all(fd, piece)
        _keep_mode(fd, name, parent)
        os.rename(staging, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(FileNotFoundError):  # a program may have taken it away
            os.unlink(staging, dir_fd=parent)
        raise
    finally:
        os.close(fd)


def _pieces(upload: Path) -> Iterator[bytes]:
    if upload.exists():
        with upload.open("rb") as stream:
            while piece := stream.read(_PIECE):
                yield piece


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _keep_mode(fd: int, name: str, parent: int) -> None:
    """Of a regular file that is replaced; never setuid or setgid."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISREG(found.st_mode):
        os.fchmod(fd, stat.S_IMODE(found.st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR)


def make_upload_path(directory: Path, upload: str) -> Path:
    """Where the parts of a file wait for the last one; the oldest of too many go."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    parts = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime)
    for path in parts[:-MAX_UPLOADS]:  # their clients have gone
        path.unlink(missing_ok=True)
    return directory / upload
