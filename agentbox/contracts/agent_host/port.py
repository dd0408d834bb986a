"""What agent-host offers beside the orchestrator slot."""

from collections.abc import AsyncIterator, Mapping
from typing import Literal, Protocol

from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.contracts.agent_host.denials import DenialCounts
from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.approvals import Approval
from agentbox.contracts.orchestrator import Signal, StreamItem
from agentbox.contracts.review_commits import CommitsChunk, CommitsFileName, CommitsPage
from agentbox.contracts.reviews import Committed, Discarded, ReviewPage, ReviewSummary
from agentbox.contracts.sandboxes import (
    ExecResult,
    FileChunk,
    NewSandbox,
    Sandbox,
    SandboxChanges,
    SessionSandbox,
)
from agentbox.contracts.states import State
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonObj


class AgentHost(Protocol):
    """Operations that need a capability which the peer lacks raise SlotUnavailable. `by` and
    `principal` name the caller. Calls that wait return after `wait_s` seconds at the latest.
    """

    @property
    def capabilities(self) -> frozenset[str]:
        """Empty while there is no peer."""
        ...

    async def list_reviews(self) -> tuple[ReviewSummary, ...]:
        """All pending reviews, oldest first."""
        ...

    async def show_review(self, agent_id: str, *, at: int, limit: int) -> ReviewPage:
        """Changes from index `at` on. Raises NotFound or ValidationError."""
        ...

    async def commit_review(self, agent_id: str, *, digest: str, by: str) -> Committed:
        """Apply the changes with that digest. Raises NotFound, PreconditionFailed, ReviewConflict
        or BackendError, and leaves the workspace unchanged."""
        ...

    async def discard_review(self, agent_id: str, *, by: str) -> Discarded:
        """Remove the branch. Raises NotFound."""
        ...

    async def show_commits(self, agent_id: str, *, at: int, limit: int) -> CommitsPage:
        """Commits from part `at` on. Raises NotFound, ValidationError, NoRepository,
        HistoryLeftOut, ObjectsBad or RefRefused."""
        ...

    async def read_commits(
        self, agent_id: str, *, name: CommitsFileName, at: int, limit: int
    ) -> CommitsChunk:
        """At most `limit` bytes of a file made from the commits. Raises what `show_commits`
        raises."""
        ...

    async def end_review(
        self, agent_id: str, *, digest: str, tip: str, ref: str, with_rest: bool, by: str
    ) -> Committed:
        """End a review whose commits were taken. Raises NotFound, PreconditionFailed, TipDiffers,
        and what `show_commits` raises."""
        ...

    async def request_approval(
        self,
        agent_id: str,
        generation: int,
        *,
        kind: str,
        value: str,
        parameters: JsonObj,
        words: str,
        hold: bool = False,
    ) -> None:
        """For a running agent; returns once approved, which takes as long as its limit
        `approval_timeout_seconds` allows. An approval covers one use; with `hold`, that of the next
        request. Raises PermissionDenied (scope `approvals`) or ValidationError."""
        ...

    async def list_approvals(self) -> tuple[Approval, ...]:
        """Those of the last day, oldest first."""
        ...

    async def get_approval(self, id: str) -> Approval:
        """Raises NotFound."""
        ...

    async def decide_approval(
        self, id: str, *, verdict: Literal["approve", "deny"], reason: str, by: str
    ) -> Approval:
        """Raises NotFound, and InvalidTransition if it is already decided or expired."""
        ...

    def watch_approvals(self) -> AsyncIterator[JsonObj]:
        """Without items: while it is read, an approver is connected."""
        ...

    async def list_states(self, *, owner: str, after: str, limit: int) -> tuple[State, ...]:
        """In order of id; `owner` "" means all owners."""
        ...

    async def get_state(self, state: str, *, principal: str, admin: bool) -> State:
        """By id or name. Raises NotFound or StateNotOwned."""
        ...

    async def remove_state(self, state: str, *, principal: str, admin: bool) -> State:
        """Detach the state; call `forget_state` after its data was removed. Raises NotFound,
        StateNotOwned or StateBusy."""
        ...

    async def due_states(self, *, before: float, limit: int) -> tuple[State, ...]:
        """Like `remove_state`, for states of runs last used before that time (Unix seconds), and
        for incomplete removals."""
        ...

    async def forget_state(self, state_id: str) -> None:
        """The data of the state was removed."""
        ...

    async def adopt_state(self, *, name: str, source: str, principal: str) -> State:
        """A new state of that name for data adopted from `source`; repeated calls return the same
        state. Raises NameTaken."""
        ...

    async def create_sandbox(self, sandbox: NewSandbox, *, request_id: str) -> Sandbox:
        """Repeated calls return the same sandbox. Raises what spawning an agent raises."""
        ...

    async def read_session_config(self) -> JsonObj:
        """What the manifest says about sessions now: `{acp, agents: {name: {command, acp}},
        log_level}`, of the enabled tables that speak ACP."""
        ...

    async def create_session_sandbox(self, sandbox: SessionSandbox, *, request_id: str) -> Sandbox:
        """Repeated calls return the same sandbox. Raises what spawning an agent raises."""
        ...

    async def suspend_sandbox(self, sandbox_id: str, *, grace_s: float | None) -> Sandbox:
        """Of a session: returns when no process of it is left. Branch, HOME and grants stay.
        Idempotent. Raises NotFound, SandboxOver, and InvalidTransition for another sandbox."""
        ...

    async def resume_sandbox(self, sandbox_id: str) -> Sandbox:
        """One more generation of a suspended one, with the rights of now, without what was revoked.
        Idempotent. Raises as `suspend_sandbox`, and what spawning an agent raises."""
        ...

    async def show_changes(self, sandbox_id: str) -> SandboxChanges:
        """Of a running or suspended session, while its programs may write. Raises NotFound, and
        BackendError if the branch cannot be read."""
        ...

    async def review_sandbox(self, sandbox_id: str) -> bool:
        """Makes the review of a suspended session, which goes on when it is resumed; False if
        nothing has changed. Raises NotFound, and InvalidTransition unless it is suspended."""
        ...

    async def list_sandboxes(self, *, limit: int, cursor: str | None) -> Page[Sandbox]:
        """Oldest first."""
        ...

    async def get_sandbox(self, sandbox_id: str) -> Sandbox:
        """Raises NotFound."""
        ...

    async def end_sandbox(self, sandbox_id: str, *, grace_s: float | None) -> Sandbox:
        """Returns when no process of it is left and its branch is sealed. Idempotent. Raises
        NotFound."""
        ...

    async def exec_sandbox(
        self,
        sandbox_id: str,
        argv: tuple[str, ...],
        *,
        request_id: str,
        cwd: str,
        env: Mapping[str, str] | None,
        stdin: bytes | None,
        interactive: bool,
        timeout_s: float,
        max_output: int,
        detach: bool,
    ) -> ExecResult:
        """The program runs on if the caller disconnects; repeated calls wait for the same one.
        Raises NotFound, SandboxOver, ExecLimit or ValidationError."""
        ...

    def stream_exec(
        self, sandbox_id: str, n: int, *, since: int, follow: bool
    ) -> AsyncIterator[StreamItem]:
        """Output and exit of a program. The output of an interactive one of a session waits for its
        program, with `follow`, and nothing of it is dropped that this has not consumed. Raises
        NotFound or CursorExpired."""
        ...

    async def signal_exec(self, sandbox_id: str, n: int, signal: Signal) -> None:
        """Raises NotFound, and InvalidTransition if it does not run."""
        ...

    async def end_exec(self, sandbox_id: str, n: int, *, grace_s: float) -> None:
        """TERM, and after `grace_s` seconds KILL, to it and what it started; returns before its
        end. Idempotent. Raises NotFound."""
        ...

    async def write_exec_stdin(
        self, sandbox_id: str, n: int, *, data: bytes, eof: bool, at: int | None = None
    ) -> None:
        """Returns when the program's pipe has taken the data; `eof` closes it then. `at`: the place
        of the first byte, counted from the start; bytes that were taken before are left out.
        Raises NotFound, ValidationError if bytes before `at` are missing, and InvalidTransition if
        its stdin is not open."""
        ...

    async def read_sandbox_file(
        self, sandbox_id: str, path: str, *, offset: int, size: int
    ) -> FileChunk:
        """Raises NotFound, SandboxOver, PathOutside, FileTooLarge or ValidationError."""
        ...

    async def write_sandbox_file(
        self, sandbox_id: str, path: str, *, upload: str, data: bytes, last: bool
    ) -> None:
        """One part of a file; the `last` one puts it in place. `upload` is an id that its parts
        share. Raises as `read_sandbox_file`."""
        ...

    async def remove_sandbox_file(self, sandbox_id: str, path: str) -> None:
        """Raises as `read_sandbox_file`."""
        ...

    async def read_record(self, after: int, *, wait_s: float = 0) -> tuple[LifecycleRecord, ...]:
        """Lines after `after`, which acknowledges all up to it; waits for the first."""
        ...

    async def use_grant(
        self,
        agent_id: str,
        generation: int,
        *,
        scope: str,
        operation: str,
        value: str,
        method: str = "",
        path: str = "",
    ) -> None:
        """Count one use of the rights that allow a request. Raises PermissionDenied."""
        ...

    def watch_authorizations(self) -> AsyncIterator[JsonObj]:
        """The authorization of every agent, then each change. A connection with this subscription
        neither ends agents nor is waited for at the end."""
        ...

    async def report_denial(
        self, agent_id: str, *, layer: str, rule: str, count: int = 1, detail: str = ""
    ) -> None:
        """Count denials by another program of the box."""
        ...

    async def read_denials(self, after: int, *, wait_s: float = 0) -> DenialCounts:
        """All counts once the revision differs from `after`."""
        ...

    async def read_canaries(self, after: int, *, wait_s: float = 0) -> CanaryReport:
        """The canary report once its revision differs from `after`."""
        ...
