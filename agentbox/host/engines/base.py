"""The interface of an engine. The CLI uses this, never an engine's program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, Protocol

from agentbox.core.frozen import frozen
from agentbox.host.engines.one_shot import OneShot
from agentbox.host.engines.state import BoxRecord, BoxState

if TYPE_CHECKING:
    from agentbox.plan.model import Plan


@frozen
class StartSpec:
    """The input for starting a box."""

    plan: Plan
    manifest: bytes
    state: BoxState
    image_ref: str = ""
    image_id: str = ""
    pulled: bool = False
    project: Path | None = None
    strict: bool = False
    lock: bytes = b""
    skill_folders: Mapping[str, Path] = field(default_factory=dict)  # by name
    hooks: Mapping[str, str] = field(default_factory=dict)  # AGENTBOX_TEST_* variables
    secrets: Mapping[str, str] = field(default_factory=dict)
    made_of: str = (
        ""  # digest of image or sources, project, strict, hooks (neither plan nor secrets)
    )
    recreate: bool = False
    sources: str = ""  # digest of the code that a process-engine box runs
    volumes: Mapping[str, str] = field(default_factory=dict)  # names that are not those of the plan
    box: str = ""  # another box of the same plan on this host, with volumes of its own
    offline: bool = False  # without ports or a network

    @property
    def name(self) -> str:
        """The name of the box on this host: of its container, its volumes or its root."""
        return self.box or self.plan.name

    @property
    def local_id(self) -> str:
        """The image id for the engine; "" for a pulled image, which its reference identifies."""
        return "" if self.pulled else self.image_id

    @property
    def settings(self) -> dict[str, str]:
        """The variables that the boot gets beside those passed through; never a credential."""
        return {
            **self.plan.environment,
            **self.hooks,
            "AGENTBOX_PLAN_DIGEST": self.plan.digest,
            "AGENTBOX_STRICT": "1" if self.strict else "0",
        }

    @property
    def api_url(self) -> str:
        """The URL of the box's API on this host."""
        return box_url(self.plan.api.publish_address, self.plan.api.port)


@frozen
class StoredStart:
    """The input for starting an earlier generation as it was: its record, and in `files` what
    `Engine.store_files` kept. `environment` and `passed` are for the boot under the process engine.
    """

    record: BoxRecord
    state: BoxState
    files: Path
    volumes: Mapping[str, str]
    python: str
    environment: Mapping[str, str]
    passed: Sequence[str]
    secrets: Mapping[str, str]
    stop_seconds: int


def box_url(address: str, port: int) -> str:
    """Replaces a wildcard address by loopback."""
    host = "127.0.0.1" if address in {"0.0.0.0", "::"} else address
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@dataclass(frozen=True)
class BoxStatus:
    """The engine's status of a box. `exit_code` is None if it is unknown."""

    state: Literal["running", "restarting", "exited", "absent"]
    exit_code: int | None = 0
    restarts: int = 0
    started_at: str = ""


class Engine(Protocol):
    """Runs boxes. Every method raises AgentboxError with exit code 6 when the engine fails."""

    name: str
    protections_absent: tuple[str, ...]

    def check(self, start: StartSpec) -> None:
        """Raises AgentboxError if `start` would fail: exit 7 for a port or name in use, 3 for
        limits.
        """
        ...

    def start(self, start: StartSpec) -> BoxRecord:
        """Starts the box; with `recreate` it replaces an existing one."""
        ...

    def store_files(self, start: StartSpec, folder: Path) -> None:
        """Keeps the rendered files of a start in `folder`, without secrets."""
        ...

    def start_stored(self, stored: StoredStart) -> BoxRecord:
        """Starts an earlier generation from its kept files, in place of what runs."""
        ...

    def run_once(self, shot: OneShot, doing: str, stdin: IO[bytes] | None = None) -> str:
        """Runs one program on the volumes of the box; returns its stdout."""
        ...

    def has_state(self, name: str, state: BoxState, volumes: Mapping[str, str]) -> bool:
        """True if the box has a state in these volumes."""
        ...

    def discard_volumes(self, name: str, state: BoxState, volumes: Mapping[str, str]) -> None:
        """Removes volumes that no generation uses."""
        ...

    def refresh(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        """Restarts the box with the current manifest and secrets."""
        ...

    def rewrite(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        """Updates the files that the box reads, without restarting it."""
        ...

    def secrets_match(self, start: StartSpec) -> bool:
        """True if the box has the secret values that `start` would set."""
        ...

    def find_running(self, name: str, state: BoxState, api_url: str) -> BoxRecord | None:
        """Find a running box of this state directory whose record is lost; the record is not
        settled.
        """
        ...

    def inspect(self, record: BoxRecord) -> BoxStatus:
        """Return the status; `absent` if there is no such box, even if something else has the
        name.
        """
        ...

    def stop(self, record: BoxRecord, seconds: int) -> None:
        """Sends TERM, then KILL after `seconds`. The stopped box is kept."""
        ...

    def restart(self, record: BoxRecord, seconds: int) -> None: ...

    def remove(self, record: BoxRecord, *, volumes: bool) -> None:
        """Removes what a stopped box left in the engine; its volumes only if `volumes` is set."""
        ...

    def find_stored(self, name: str, state: BoxState) -> BoxRecord | None:
        """Return a record of the stored data of a box that is down, for `remove`; None if there is
        none.
        """
        ...

    def logs(
        self, record: BoxRecord, *, follow: bool, lines: int | None, since: str | None
    ) -> Iterator[str]:
        """Yield lines of the box's output, oldest first. `since` (ISO 8601) is a hint; older lines
        may follow.
        """
        ...

    def execute(self, record: BoxRecord, argv: Sequence[str], *, terminal: bool) -> int:
        """Runs a program in the box as its user on this terminal; returns its exit code."""
        ...

    def read(self, record: BoxRecord, box_path: str) -> bytes:
        """Return the content of a small file in the box."""
        ...

    def run_inside(self, record: BoxRecord, module: str, stdin: str, seconds: float) -> str:
        """Runs a module in the box as its user, with `stdin` on stdin; returns its stdout."""
        ...
