"""What the operator's machine stores about a box: its directory, record and lock. Never inside the
source tree."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors, write_atomically
from agentbox.core.frozen import frozen

T = TypeVar("T")
_TOKEN = re.compile(rb"[!-~]+")
MAX_BUILDS = 5  # images and records that `up` keeps for going back
_GRANTED_FILE, _BUILDS_FILE = "granted", "builds.json"


@frozen
class BoxRecord:
    """How the box was last started. `image_id` is "" under the process engine.

    `settled` is False from the start of a change to its end: meanwhile it is unknown what runs.
    """

    engine: str
    name: str
    api_url: str
    image_ref: str = ""
    image_id: str = ""
    pulled: bool = False
    plan_digest: str = ""
    manifest: str = ""  # path of the manifest on this host
    project: str = ""  # directory mounted as the workspace, "" = the volume
    strict: bool = False
    test_hooks: bool = False
    hooks: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""  # compose directory of a container
    root: str = ""  # prefix of a process-engine box
    pid: int = 0
    start_ticks: int = 0
    apply: Mapping[str, str] = field(default_factory=dict)  # `Plan.apply` of the running box
    made_of: str = ""  # digest of everything else that the box is created from
    generation: int = 0  # 0: started by a release without generations
    volumes: Mapping[str, str] = field(default_factory=dict)  # names that are not today's
    settled: bool = True

    @property
    def local_id(self) -> str:
        """The image id for the engine; "" for a pulled image, which its reference identifies."""
        return "" if self.pulled else self.image_id


@dataclass(frozen=True)
class BuildStamp:
    """The inputs of the loaded image, so that an unchanged `up` builds nothing."""

    key: str
    image_id: str
    manifest_digest: str
    tag: str
    plan_digest: str
    pulled: bool = False  # from a registry, so the engine knows it by `reference`

    @property
    def reference(self) -> str:
        """`tag@sha256:<manifest digest>`, as compose names the image."""
        return f"{self.tag}@{self.manifest_digest}"


@dataclass(frozen=True)
class _Builds:
    builds: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class BoxState:
    """The state directory of a box, 0700: `record.json`, `builds.json`, `compose/`, `secrets/`,
    `token`, `up.lock`."""

    directory: Path

    @property
    def compose_dir(self) -> Path:
        return self.directory / "compose"

    @property
    def secrets_dir(self) -> Path:
        """The secrets of `secrets set`; the box has its own copies."""
        return self.directory / "secrets"

    @property
    def record_file(self) -> Path:
        return self.directory / "record.json"

    @property
    def token_file(self) -> Path:
        return self.directory / "token"

    def make(self) -> None:
        """Creates the directory, owned by the caller (under sudo: the calling user). Raises
        AgentboxError (exit 3).
        """
        if not self.directory.exists():
            from agentbox.core.paths import CHECKOUT  # needed only once
            from agentbox.host.uninstall.inventory import Inventory

            inventory = Inventory(self.directory.parent)
            try:
                inventory.add("checkout", CHECKOUT)
                inventory.add("box", self.directory.name)
            except AgentboxError:
                self._make_directory()  # which says what is wrong with the directory
                self.directory.rmdir()
                raise
        self._make_directory()

    def _make_directory(self) -> None:
        from agentbox.host.engines.sudo_user import make_directory

        with wrap_os_errors(f"make the state directory {self.directory}"):
            make_directory(self.directory)

    @contextmanager
    def exclusive_lock(self, *, with_root: bool = True, name: str = "up") -> Iterator[None]:
        """Locks the box for one command of a kind at a time; the kernel releases the lock when the
        command ends. `with_root`: and against an uninstallation, which locks the state root.

        Raises AgentboxError: exit 7 if it is locked, exit 3 if the directory is not writable.
        """
        from agentbox.host.engines.root_lock import root_lock  # needed for a change only

        self.make()
        path = self.directory / f"{name}.lock"
        with wrap_os_errors(f"lock the box {self.directory.name} by {path}"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        shared = root_lock(self.directory.parent) if with_root else nullcontext()
        with os.fdopen(descriptor, "r+") as lock, shared:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = lock.read().strip()
                raise AgentboxError(
                    f"cannot change the box {self.directory.name}: another agentbox command is "
                    f"running (pid {holder or 'unknown'})",
                    "Wait until it ends, or stop it.",
                    exit_code=ExitCode.BUSY,
                ) from None
            try:
                with wrap_os_errors(f"lock the box {self.directory.name} by {path}"):
                    os.pwrite(descriptor, f"{os.getpid():<10}\n".encode(), 0)
                yield
            finally:
                from agentbox.host.engines.sudo_user import chown_tree

                chown_tree(self.directory)

    def record(self) -> BoxRecord | None:
        """Return the record of the last start, or None; also None for a damaged one, which `up`
        rewrites.
        """
        return _read_record(self.record_file, BoxRecord)

    def running_record(self) -> BoxRecord:
        """Return the record. Raises AgentboxError (exit 8) if the box was never started or is
        down.
        """
        record = self.record()
        if record is None:
            raise AgentboxError(
                f"cannot reach the box {self.directory.name}: it is not running",
                "Start it: ./agentbox.sh up",
                exit_code=ExitCode.NOT_RUNNING,
            )
        return record

    def save_record(self, record: BoxRecord) -> None:
        write_atomically(self.record_file, json.dumps(asdict(record), indent=2) + "\n")

    def clear(self) -> None:
        for path in (self.record_file, self.token_file):
            path.unlink(missing_ok=True)

    def granted_directories(self) -> list[Path]:
        """The operator's directories whose access list `up --project` changed."""
        with wrap_os_errors(f"read {self.directory / _GRANTED_FILE}"):
            file = self.directory / _GRANTED_FILE
            return [Path(line) for line in file.read_text().splitlines()] if file.exists() else []

    def save_grants(self, directories: Iterable[Path]) -> None:
        write_atomically(
            self.directory / _GRANTED_FILE,
            "".join(f"{directory}\n" for directory in sorted(set(directories))),
        )

    def build_stamp(self) -> BuildStamp | None:
        """The last build, None before the first."""
        return next(iter(self.builds()), None)

    def builds(self) -> list[BuildStamp]:
        """The last builds, newest first, at most MAX_BUILDS; their images are kept."""
        return self.all_builds()[:MAX_BUILDS]

    def outdated_builds(self) -> list[BuildStamp]:
        """Older builds, whose images may still exist."""
        return self.all_builds()[MAX_BUILDS:]

    def add_build(self, stamp: BuildStamp) -> None:
        """Makes `stamp` the last build and removes an older one of the same image."""
        self._write_builds(
            [stamp, *(build for build in self.all_builds() if build.image_id != stamp.image_id)]
        )

    def save_outdated_builds(self, stamps: Iterable[BuildStamp]) -> None:
        """Replaces the outdated builds."""
        self._write_builds([*self.builds(), *stamps])

    def other_boxes(self) -> list[BoxState]:
        """The other boxes of this user on this host."""
        return [
            BoxState(path)
            for path in sorted(self.directory.parent.iterdir())
            if path.is_dir() and path != self.directory
        ]

    def all_builds(self) -> list[BuildStamp]:
        """The last builds and the outdated ones, newest first."""
        record = _read_record(self.directory / _BUILDS_FILE, _Builds)
        rows = record.builds if record is not None else []
        return [stamp for row in rows if (stamp := parse_record(BuildStamp, row)) is not None]

    def _write_builds(self, stamps: Iterable[BuildStamp]) -> None:
        rows = [asdict(stamp) for stamp in stamps]
        write_atomically(
            self.directory / _BUILDS_FILE, json.dumps({"builds": rows}, indent=2) + "\n"
        )

    def token(self) -> str:
        """The admin token of the running box. Raises AgentboxError (exit 8) if `up` has not read
        one yet.
        """
        token = self.stored_token()
        if not token:
            raise AgentboxError(
                f"cannot authenticate to the box {self.directory.name}: "
                f"{self.token_file} has no token",
                "Run ./agentbox.sh up to read the token from the box.",
                exit_code=ExitCode.NOT_RUNNING,
            )
        return token

    def save_token(self, token: str) -> None:
        if token != self.stored_token():
            write_atomically(self.token_file, token + "\n")

    def stored_token(self) -> str:
        """Return the token, "" if there is none or it is damaged: it can be read from the box
        again.
        """
        with wrap_os_errors(f"read {self.token_file}"):
            content = self.token_file.read_bytes().strip() if self.token_file.exists() else b""
        return content.decode("ascii") if _TOKEN.fullmatch(content) else ""


def _read_record(path: Path, record_type: type[T]) -> T | None:
    try:
        with wrap_os_errors(f"read {path}"):
            if not path.exists():
                return None
            document = json.loads(path.read_bytes())
    except ValueError:
        return None
    return parse_record(record_type, document)


def parse_record(record_type: type[T], document: Any) -> T | None:
    """Return the record in a document; None if it does not fit."""
    try:
        record = record_type(**document)
    except TypeError:
        return None
    record_fields = fields(record)  # type: ignore[arg-type]
    return record if all(_has_default_type(record, item) for item in record_fields) else None


def _has_default_type(record: object, record_field: Field[object]) -> bool:
    """True if a field has the type of its default; str without a default."""
    if record_field.default_factory is not MISSING:
        return isinstance(getattr(record, record_field.name), type(record_field.default_factory()))
    return isinstance(
        getattr(record, record_field.name),
        str if record_field.default is MISSING else type(record_field.default),
    )
