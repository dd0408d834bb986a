"""A snapshot to restore: of the box's repository, or a file."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentbox.contracts.backups import CUT_FILE
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import Paths
from agentbox.host.engines.locations import process_root
from agentbox.host.generations.store import GenerationStore

if TYPE_CHECKING:
    from agentbox.backup.repository import OpenedMember, Repository
    from agentbox.contracts.backups import Snapshot
    from agentbox.host.cli.context import CliContext

_ELSEWHERE: Final = (
    "Snapshots that are elsewhere: give --repository with their folder, or the file of one."
)
LATEST: Final = "latest"
_AGE, _ZSTD = b"age-encryption.org/", b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Source:
    """`head` and `repository` are None for a file without a head beside it."""

    name: str
    repository: Repository | None
    file: Path | None
    head: Snapshot | None

    def verify(self) -> None:
        """Compares the archive with its head. Raises AgentboxError (exit 1) that names the file."""
        if self.head is None or self.repository is None:
            return
        for fault in self.repository.verify(self.head.id):
            raise AgentboxError(
                f"cannot restore {self.name}: {fault}",
                "The box was not touched. Take another snapshot, or another copy of the "
                "repository.",
            )

    def members(self, identities: Sequence[Any]) -> AbstractContextManager[Iterator[OpenedMember]]:
        """Raises BackupError: exit 2 without an identity that opens it, 1 for damage."""
        if self.head is not None and self.repository is not None:
            return self.repository.open(self.head.id, identities)
        assert self.file is not None, "a source has a head or a file"
        return _file_members(self.name, self.file, identities)


@contextmanager
def found_source(
    cli: CliContext, wanted: str, engine: str, box: str, repository: Path | None = None
) -> Iterator[Source]:
    """`wanted` is a file, or an id or `latest` of `repository`, by default that of the box. Raises
    AgentboxError (exit 1) if there is none.
    """
    file = Path(wanted)
    if file.is_file() and _is_export(file):
        with tempfile.TemporaryDirectory(prefix="agentbox-restore-") as folder:
            yield _exported_source(file, Path(folder))
    else:
        yield _find_source(cli, wanted, engine, box, repository)


def _is_export(file: Path) -> bool:
    """True for what `backup export` writes: a tar of a head and its archive."""
    try:
        with tarfile.open(file, "r:") as tar:
            first = tar.next()
            return first is not None and _is_head(first.name)
    except (tarfile.TarError, OSError):
        return False


def _is_head(name: str) -> bool:
    return "/" not in name and name.endswith(".json") and name != CUT_FILE


def _exported_source(file: Path, folder: Path) -> Source:
    from agentbox.backup.archive.repository import ArchiveRepository
    from agentbox.backup.errors import repository_errors
    from agentbox.backup.export import import_export

    repository = ArchiveRepository(folder, None)
    with repository_errors(f"read {file}"), file.open("rb") as stream:
        head = repository.get(import_export(stream, folder))
    return Source(head.id, repository, None, head)


def _find_source(
    cli: CliContext, wanted: str, engine: str, box: str, repository: Path | None
) -> Source:
    from agentbox.backup.archive.repository import ArchiveRepository
    from agentbox.host.backups.repository import repository_in, repository_of_box

    file = Path(wanted)
    if file.is_file():
        name = file.name.removesuffix(".age").removesuffix(".zst").removesuffix(".tar")
        beside = file.parent / f"{name}.json"
        archives = ArchiveRepository(file.parent, None)
        head = archives.get(name) if beside.is_file() else None
        return Source(name, archives, file, head)
    if repository is not None:
        found = repository_in(cli, repository)
    else:
        found = repository_of_box(cli, lambda: repository_folder(cli, engine, box))
    head = found.get(wanted)
    return Source(head.id, found, None, head)


def repository_folder(cli: CliContext, engine: str, box: str) -> Path:
    """Where the snapshots of a box are on this host. Raises AgentboxError (exit 3) if they cannot
    be read.
    """
    configured = cli.load_manifest().usable.backup.folder
    if configured.startswith("/"):
        return Path(configured)
    if engine == "process":
        return Paths(process_root(box, cli.state())).backups
    volumes = GenerationStore(cli.state()).volumes("docker")
    volume = f"{box}-{volumes.get(configured, configured)}"
    folder = _mountpoint(box, volume)
    try:
        readable = folder.is_dir()
    except PermissionError:
        readable = False
    if not readable:
        raise AgentboxError(
            f"cannot read the volume {volume} at {folder}: no permission",
            "Run the command as root, or take the snapshot out first: agentbox backup export ID "
            "--out FILE, then agentbox restore FILE.",
            exit_code=ExitCode.PREREQUISITE,
        )
    return folder


def _mountpoint(box: str, volume: str) -> Path:
    from agentbox.host.engines.docker.docker_cli import docker
    from agentbox.host.engines.docker.one_shot import volume_exists

    doing = f"find the snapshots of {box}"
    try:
        if volume_exists(volume):
            argv = ["volume", "inspect", "--format", "{{.Mountpoint}}", volume]
            return Path(docker(argv, doing=doing).strip())
    except AgentboxError as error:
        raise AgentboxError(
            error.message, f"{error.hint} {_ELSEWHERE}".lstrip(), exit_code=error.exit_code
        ) from error
    raise AgentboxError(
        f"cannot {doing}: there is no volume {volume}", _ELSEWHERE, exit_code=ExitCode.USAGE
    )


@contextmanager
def _file_members(
    name: str, file: Path, identities: Sequence[Any]
) -> Iterator[Iterator[OpenedMember]]:
    from agentbox.backup.archive.keys import wrong_identity
    from agentbox.backup.archive.reading import opened, opened_tar
    from agentbox.backup.archive.streams import ArchiveDamaged, NoMatchingIdentity
    from agentbox.backup.errors import damaged, repository_errors

    try:
        with repository_errors(f"read {file}"), file.open("rb") as stream:
            start = stream.read(len(_AGE))
            stream.seek(0)
            if start == _AGE and not identities:
                raise wrong_identity(name, _stanzas(file), given=False)
            if start == _AGE or start.startswith(_ZSTD):
                with opened(stream, identities if start == _AGE else None) as members:
                    yield members
            else:
                with opened_tar(stream) as members:
                    yield members
    except NoMatchingIdentity as error:
        raise wrong_identity(name, _stanzas(file), given=True) from error
    except ArchiveDamaged as error:
        raise damaged(file.name, str(error)) from error


def _stanzas(file: Path) -> int:
    """The number of recipients of an age file: one stanza each, until the header ends."""
    count = 0
    with file.open("rb") as stream:
        for line in iter(lambda: stream.readline(1024), b""):
            if line.startswith(b"---"):
                break
            count += line.startswith(b"-> ")
    return count
