"""What a program of this box may call over its connection to agent-host: the operations in its row,
on entries that it made.

Such a program reads what agents wrote, so it may be under the control of one. It has no right of
its callers: it is never admin, and it neither sees nor names the agents of others.
"""

import hmac
import os
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentbox.agents.registry.host_state import HostState
from agentbox.contracts.agent_host.rpc import rpc_method
from agentbox.contracts.operations.agent_host import AGENT_HOST
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import NotFound, PermissionDenied
from agentbox.plan.names import MCP_HOST, SESSION_HOST

# Parameters that name an entry. Operations without one make an entry, or list only those of the
# program (`context.current().program`).
_ENTRY: Final = ("sandbox_id", "agent_id")
_APPROVAL: Final = "approval."

_SANDBOXES: Final = (
    "create_sandbox",
    "list_sandboxes",
    "get_sandbox",
    "end_sandbox",
    "exec_sandbox",
    "stream_exec",
    "signal_exec",
    "write_exec_stdin",
    "read_sandbox_file",
    "write_sandbox_file",
    "remove_sandbox_file",
)
_REVIEWS: Final = ("list_reviews", "show_review", "commit_review", "discard_review")
_APPROVALS: Final = ("list_approvals", "get_approval", "decide_approval", "watch_approvals")

# Operations of `AgentHost` by program. A program with a row gets a token.
OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    SESSION_HOST: (*_SANDBOXES, *_REVIEWS, *_APPROVALS),
    MCP_HOST: _SANDBOXES,
}
METHODS: Final[Mapping[str, frozenset[str]]] = {
    program: frozenset({"ping", *(rpc_method(AGENT_HOST, name).name for name in names)})
    for program, names in OPERATIONS.items()
}


class ProgramTokens:
    """The tokens of programs for this start of agent-host."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = tokens

    @classmethod
    def write(cls, paths: Paths, programs: Iterable[str]) -> "ProgramTokens":
        """New ones, each in its file (0400) in a directory that the program can read. Raises
        OSError."""
        tokens = {program: secrets.token_hex(32) for program in programs if program in METHODS}
        for program, token in tokens.items():
            path = paths.agent_host_token(program)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            staged = path.with_suffix(".new")
            staged.unlink(missing_ok=True)
            descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
            with os.fdopen(descriptor, "w", encoding="ascii") as stream:
                stream.write(token)
            staged.rename(path)
        return cls(tokens)

    def find(self, token: bytes) -> str:
        """The program of a token, "" for an unknown one."""
        found = [
            program
            for program, own in self._tokens.items()
            if hmac.compare_digest(token, own.encode())
        ]
        return found[0] if found else ""


NO_PROGRAMS: Final = ProgramTokens({})


def check_call(host: HostState, program: str, method: str, params: Mapping[str, Any]) -> None:
    """Raises PermissionDenied for an operation that is not in its row, and NotFound for what
    another one made, as for what does not exist."""
    if method not in METHODS[program]:
        raise PermissionDenied(f"cannot call {method}: {program} may not", scope="core")
    for name in _ENTRY:
        if name in params and not owns(host, program, params[name]):
            kind = name.removesuffix("_id")
            raise NotFound(
                f"cannot find {kind} {params[name]}", resource=kind, id=str(params[name])
            )
    if method.startswith(_APPROVAL) and "id" in params:
        approval = host.approvals.get(params["id"])
        if not owns(host, program, approval.family):
            raise NotFound("cannot find this approval", resource="approval", id=approval.id)


def owns(host: HostState, program: str, agent_id: object) -> bool:
    """Whether that program made the entry; everything is that of the control plane ("")."""
    if not program:
        return True
    entry = host.entries.get(agent_id) if isinstance(agent_id, str) else None
    return entry is not None and entry.program == program
