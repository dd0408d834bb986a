"""What the operator's machine remembers of one box: its folder, its record, its lock. Never inside the source tree."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from agentbox.errors import AgentboxError, ExitCode

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class BoxRecord:
    """How the box was last started. `image_id` is "" under the process engine."""

    engine: str
    name: str
    api_url: str
    image_ref: str = ""
    image_id: str = ""
    plan_digest: str = ""
    manifest: str = ""  # path of the manifest on this host
    project: str = ""  # folder mounted as the workspace, "" = the volume
    strict: bool = False
    root: str = ""  # prefix of a process-engine box
    pid: int = 0
    start_ticks: int = 0


@dataclass(frozen=True)
class BuildStamp:
    """Which inputs the loaded image was made of, so that an unchanged `up` builds nothing."""

    key: str
    image_id: str
    manifest_digest: str
    tag: str
    plan_digest: str

    @property
    def reference(self) -> str:
        """`tag@sha256:<manifest digest>`, as compose names the image."""
        return f"{self.tag}@{self.manifest_digest}"


@dataclass(frozen=True)
class BoxState:
    """The state folder of a box, 0700: `record.json`, `build.json`, `compose/`, `token`, `up.lock`."""

    folder: Path

    @property
    def compose_dir(self) -> Path:
        return self.folder / "compose"

    @property
    def token_file(self) -> Path:
        return self.folder / "token"

    def make(self) -> None:
        """Creates the folder, owned by the caller (under sudo: the calling user). Raises AgentboxError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.chmod(0o700)
        except OSError as error:
            raise AgentboxError(
                f"cannot make the state folder {self.folder}: {error.strerror}",
                "Set AGENTBOX_STATE_DIR to a folder that you can write.",
                exit_code=ExitCode.PREREQUISITE,
            ) from error

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Holds the box for one changing command at a time. Raises AgentboxError (exit 7) when another holds it."""
        self.make()
        with (self.folder / "up.lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                raise AgentboxError(
                    f"cannot change the box {self.folder.name}: another agentbox command (pid {lock.read().strip()}) is at it",
                    "Wait until it ends, or stop it.",
                    exit_code=ExitCode.BUSY,
                ) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def record(self) -> BoxRecord | None:
        """The record of the last start, or None. A damaged one counts as none: `up` writes it anew."""
        return _read(self.folder / "record.json", BoxRecord)

    def running_record(self) -> BoxRecord:
        """The record, or AgentboxError (exit 8) when this box was never started or is down."""
        record = self.record()
        if record is None:
            raise AgentboxError(
                f"cannot reach the box {self.folder.name}: it is not running",
                "Start it: ./agentbox.sh up",
                exit_code=ExitCode.NOT_RUNNING,
            )
        return record

    def remember(self, record: BoxRecord) -> None:
        write_atomically(self.folder / "record.json", json.dumps(asdict(record), indent=2) + "\n")

    def forget(self) -> None:
        for name in ("record.json", "token"):
            (self.folder / name).unlink(missing_ok=True)

    def build_stamp(self) -> BuildStamp | None:
        return _read(self.folder / "build.json", BuildStamp)

    def remember_build(self, stamp: BuildStamp) -> None:
        write_atomically(self.folder / "build.json", json.dumps(asdict(stamp), indent=2) + "\n")

    def token(self) -> str:
        """The admin token of the running box. Raises AgentboxError (exit 8) when `up` has not read one yet."""
        if not self.token_file.exists():
            raise AgentboxError(
                f"cannot authenticate to the box {self.folder.name}: {self.token_file} does not exist",
                "Run ./agentbox.sh up: it reads the token from the box.",
                exit_code=ExitCode.NOT_RUNNING,
            )
        return self.token_file.read_text().strip()

    def keep_token(self, token: str) -> None:
        write_atomically(self.token_file, token + "\n")


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Replaces a file whole: a reader, or a crash, sees the old text or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return kind(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
