"""Starts the program that reads the commits, confined, and takes over its result."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import structlog

import agentbox
from agentbox.agents.config import HostConfig
from agentbox.agents.review.change import FileChange
from agentbox.agents.review.commits import confined, repository
from agentbox.agents.review.commits.confined.main import RESULT
from agentbox.agents.review.commits.history import SealedHistory
from agentbox.agents.review.commits.record import (
    FILES,
    CommitsError,
    CommitsRecord,
    LeftOut,
    StoredFile,
)
from agentbox.agents.review.commits.refs import is_id, read_bytes
from agentbox.agents.runs import home
from agentbox.agents.runs.confinement import protected_dirs, resolve_in_box
from agentbox.core.linux.landlock import PathRule
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.path_opener import SYSTEM_DIRECTORIES
from agentbox.sandbox.base_grants import BASE_GRANTS
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.client import AgentProcess, LauncherClient
from agentbox.sandbox.launcher.orphans import MARK
from agentbox.sandbox.spec import Launch

SECONDS: Final = 60.0
_MEMORY: Final = 512 << 20  # bytes of git and of the program together
_DISK: Final = 2 << 30  # bytes of all files that it makes
_MAX_FILE: Final = 1 << 30
_PROCESSES: Final = 32
_DESCRIPTORS: Final = 256
_MAX_RESULT: Final = 16 << 20
_MAX_ERROR: Final = 4 << 10
_MAX_LISTED: Final = 100
_MAX_PATHS: Final = 1_000
_MAX_WORDS: Final = 2_000  # characters of an error
_CHUNK: Final = 1 << 20
_END_SECONDS: Final = 3.0
# Isolated, without site packages: its modules need the standard library only. The directory of the
# package is all that it may read of where it is installed.
_PROGRAM: Final = (
    "import os, sys, types\n"
    "from pathlib import Path\n"
    f"package = sys.modules[{agentbox.__name__!r}] = types.ModuleType({agentbox.__name__!r})\n"
    "package.__path__ = [sys.argv[1]]\n"
    f"from {confined.__name__}.main import main\n"
    "os.umask(0o077)\n"
    "sys.exit(main(Path(sys.argv[2])))\n"
)
log = structlog.get_logger()


class CommitExtractor:
    """`mark` is in the environment of every process of this host's agents."""

    def __init__(self, config: HostConfig, launcher: LauncherClient, mark: str) -> None:
        self._config, self._launcher, self._mark = config, launcher, mark

    async def extract(
        self,
        history: SealedHistory,
        *,
        agent_id: str,
        name: str,
        sealed: Path,
        directory: Path,
        objects: tuple[str, ...],
        changes: Iterable[FileChange],
        when: float,
        seconds: float = SECONDS,
    ) -> CommitsRecord | None:
        """The commits of a sealed branch, with the files made from them in `directory`, which is
        replaced. `objects`: directories that the branch borrows from. A failure is a record with an
        error. None without a repository; nothing is started without a new commit. Raises OSError if
        the disk fails. It takes at most `seconds`."""
        record = history.record
        sealed, directory = (
            resolve_in_box(self._config.paths, path) for path in (sealed, directory)
        )
        if record.error == "no-repository":
            return None
        if record.error or record.tip in ("", record.start):
            return record
        given = {
            "name": agent_id,
            "tip": record.tip,
            "start": record.start,
            "format": history.object_format,
            "sealed": str(sealed),
            "changes": [change.path for change in changes],
            "author": f"{_plain(name) or 'agent'} <{agent_id}@agentbox.invalid>",
            "when": int(when),
        }
        await asyncio.to_thread(
            _prepare, directory, given, (str(sealed / ".git/objects"), *objects), objects
        )
        try:
            launch = self._launch(agent_id, sealed, directory, objects)
            return await self._extract(history, replace(launch, wall_seconds=seconds), directory)
        finally:
            await asyncio.to_thread(_clean_up, directory)

    async def _extract(
        self, history: SealedHistory, launch: Launch, directory: Path
    ) -> CommitsRecord:
        try:
            code, words = await self._run(launch)
        except SpawnFailed as error:
            return _failed(history, "history-left-out", f"cannot start git: {error.message}")
        if code != 0:
            log.error("cannot read commits", directory=str(directory), code=code, stderr=words)
            reason = (
                f"reading them took more than {launch.wall_seconds:.0f} s or {_MEMORY >> 20} MiB"
                if code is None
                else f"the program that reads them ended with {code}"
            )
            return _failed(history, "history-left-out", reason)
        return await asyncio.to_thread(_read_result, history, directory)

    def _launch(
        self, agent_id: str, sealed: Path, directory: Path, objects: tuple[str, ...]
    ) -> Launch:
        package = str(Path(agentbox.__file__).resolve().parent)
        programs = (path for path in SYSTEM_DIRECTORIES if path != "/etc")
        confinement = Confinement(
            grants=(
                *BASE_GRANTS,
                *(PathRule(path, "lrx") for path in programs),
                PathRule(package, "lr"),
                PathRule(str(sealed), "lr"),
                *(PathRule(path, "lr") for path in objects),
                PathRule(str(directory), "lrwm"),
            ),
            closed_ports=self._config.closed_ports,
            target_ports=self._config.target_ports,
            allow_degraded=tuple(sorted(self._config.limits.allow_degraded)),
            closed=protected_dirs(self._config.paths),
            own=(str(directory.parent),),
        )
        return Launch(
            argv=(sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, package, str(directory)),
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8",
                "HOME": str(directory),
                "TMPDIR": str(directory / "tmp"),
                MARK: f"{self._mark}:{agent_id}",
            },
            cwd=str(directory),
            roots=(str(directory),),
            memory=_MEMORY,
            pids=_PROCESSES,
            box_tasks=self._config.box_tasks,
            box_memory=self._config.box_memory,
            fds=_DESCRIPTORS,
            file_size=_MAX_FILE,
            private=str(directory),
            branch_disk=_DISK,
            grace_seconds=0,
            confinement=confinement,
        )

    async def _run(self, launch: Launch) -> tuple[int | None, str]:
        """Exit code and the beginning of stderr; None if it was ended. None of its tree runs when
        this returns."""
        process: AgentProcess = await self._launcher.spawn(launch)
        try:
            ended = await asyncio.shield(process.ended)
            os.set_blocking(process.stderr, False)
            words = os.read(process.stderr, _MAX_ERROR).decode("utf-8", "replace")
            return ended.code, words
        except BaseException:
            process.end(0)
            await asyncio.wait([process.ended], timeout=_END_SECONDS)
            raise
        finally:
            process.close_descriptors()


def _prepare(
    directory: Path,
    given: Mapping[str, Any],
    all_objects: tuple[str, ...],
    objects: tuple[str, ...],
) -> None:
    home.remove(directory)
    for name in ("out", "tmp"):
        (directory / name).mkdir(parents=True, mode=0o700)
    repository.create(directory / "source.git", given["format"], all_objects)
    repository.create(directory / "verified.git", given["format"], objects)
    (directory / "input.json").write_text(json.dumps(given), encoding="ascii")


def _read_result(history: SealedHistory, directory: Path) -> CommitsRecord:
    """Nothing that the program wrote is believed but for its text: files are hashed here."""
    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        data = read_bytes(root, f"out/{RESULT}", _MAX_RESULT)
        if data is None:
            return _failed(history, "history-left-out", "the program wrote no result")
        result = json.loads(data)
        if not isinstance(result, dict):
            raise TypeError(type(result).__name__)
        if result.get("error"):
            bad = result["error"] == "objects-bad"
            words = str(result["detail"])[:_MAX_WORDS]
            return _failed(history, "objects-bad" if bad else "history-left-out", words)
        files = {name: _stored(root, name) for name in FILES}
        kept: dict[str, StoredFile] = {
            name: file for name, file in files.items() if file is not None
        }
        return _record(history.record, result, kept)
    except (ValueError, TypeError, KeyError, RecursionError, IsADirectoryError) as error:
        why = f"the result of the program is malformed: {type(error).__name__}"
        return _failed(history, "history-left-out", why)
    finally:
        os.close(root)


def _record(
    record: CommitsRecord, result: Mapping[str, Any], files: dict[str, StoredFile]
) -> CommitsRecord:
    if not result["count"]:
        return record
    submodules = tuple(
        LeftOut(what=str(path), why="a submodule link: its commits are not part of this repository")
        for path in result["submodules"][:_MAX_LISTED]
    )
    tip = str(result.get("rest_tip", ""))
    return replace(
        record,
        count=int(result["count"]),
        parts=int(result["parts"]),
        runs_by_itself=int(result["runs_by_itself"]),
        left_out=(*record.left_out, *submodules),
        files=files,
        patches_why=str(result["patches_why"])[:_MAX_WORDS],
        rest=tuple(
            LeftOut(what=str(path), why=str(what)) for path, what in result["rest"][:_MAX_PATHS]
        ),
        rest_count=int(result["rest_count"]),
        rest_tip=tip if is_id(tip) else "",
        rest_why=str(result.get("rest_why", ""))[:_MAX_WORDS],
        ignored=int(result["ignored"]),
    )


def _stored(root: int, name: str) -> StoredFile | None:
    try:
        descriptor = open_beneath(root, f"out/{name}", os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    digest, size = hashlib.sha256(), 0
    try:
        while data := os.read(descriptor, _CHUNK):
            digest.update(data)
            size += len(data)
    finally:
        os.close(descriptor)
    return StoredFile(sha256=digest.hexdigest(), size=size)


def _clean_up(directory: Path) -> None:
    """Keep `out` only."""
    for path in directory.iterdir():
        if path.name != "out":
            if path.is_dir() and not path.is_symlink():
                home.remove(path)
            else:
                path.unlink()


def _failed(history: SealedHistory, error: CommitsError, detail: str) -> CommitsRecord:
    return replace(history.record, error=error, detail=detail)


def _plain(name: str) -> str:
    """A name that a commit can have."""
    return "".join(c for c in name if c.isprintable() and c not in "<>").strip(" .,:;\"'")
