"""What every engine can do with a box. The CLI talks to this, never to an engine's program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from agentbox.host.engines.state import BoxRecord, BoxState

if TYPE_CHECKING:
    from agentbox.plan.model import Plan


@dataclass(frozen=True, kw_only=True)
class StartSpec:
    """What a box is started from."""

    plan: Plan
    manifest: bytes
    state: BoxState
    image_ref: str = ""
    image_id: str = ""
    pulled: bool = False
    project: Path | None = None
    strict: bool = False
    hooks: Mapping[str, str] = field(default_factory=dict)  # AGENTBOX_TEST_* variables
    secrets: Mapping[str, str] = field(default_factory=dict)
    made_of: str = (
        ""  # digest of what is neither plan nor secret: image or sources, project, strict, hooks
    )
    recreate: bool = False

    @property
    def local_id(self) -> str:
        """What names the image to the engine: its id, "" where its reference does, as of a pulled one."""
        return "" if self.pulled else self.image_id

    @property
    def api_url(self) -> str:
        """Where the box will answer on this host."""
        return box_url(self.plan.api.publish_address, self.plan.api.port)


def box_url(address: str, port: int) -> str:
    """A wildcard address is reached on loopback."""
    host = "127.0.0.1" if address in {"0.0.0.0", "::"} else address
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@dataclass(frozen=True)
class BoxStatus:
    """What an engine says of a box. `exit_code` is None where nobody was there to learn it."""

    state: Literal["running", "restarting", "exited", "absent"]
    exit_code: int | None = 0
    restarts: int = 0
    started_at: str = ""


class Engine(Protocol):
    """One way to run a box. Every method raises AgentboxError with exit code 6 when the engine refuses."""

    name: str
    protections_absent: tuple[str, ...]

    def check(self, start: StartSpec) -> None:
        """Raises AgentboxError for what would stop `start`: exit 7 for a port or a name that is taken, 3 for limits."""
        ...

    def start(self, start: StartSpec) -> BoxRecord:
        """Brings the box up as described; with `recreate` anew, whatever was there."""
        ...

    def refresh(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        """Boots the box again with the manifest and the secrets as they are now."""
        ...

    def rewrite(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        """Changes the files that the box reads, and not the box."""
        ...

    def secrets_match(self, start: StartSpec) -> bool:
        """True when the box has the values of its secrets that it would be started with."""
        ...

    def find_running(self, name: str, state: BoxState, api_url: str) -> BoxRecord | None:
        """A box of ours that runs though its record is lost: not settled."""
        ...

    def inspect(self, record: BoxRecord) -> BoxStatus:
        """`absent` when there is none of ours, whoever else has the name."""
        ...

    def stop(self, record: BoxRecord, seconds: int) -> None:
        """TERM, then KILL after `seconds`. The box stays, stopped."""
        ...

    def restart(self, record: BoxRecord, seconds: int) -> None: ...

    def remove(self, record: BoxRecord, *, volumes: bool) -> None:
        """Removes what a stopped box left in the engine; its volumes only if asked."""
        ...

    def find_stored(self, name: str, state: BoxState) -> BoxRecord | None:
        """What a box that is down has stored, to be removed by `remove`; None when there is nothing."""
        ...

    def logs(
        self, record: BoxRecord, *, follow: bool, lines: int | None, since: str | None
    ) -> Iterator[str]:
        """Lines of the box's output, oldest first. `since` (ISO 8601) may be taken as a hint and older lines given too."""
        ...

    def execute(self, record: BoxRecord, argv: Sequence[str], *, terminal: bool) -> int:
        """Runs a program in the box as its user, on this terminal; returns its exit code."""
        ...

    def read(self, record: BoxRecord, box_path: str) -> bytes:
        """The content of one small file of the box."""
        ...
