"""Errors that an adapter may raise."""

import errno
from collections.abc import Mapping, Sequence
from typing import Any

from agentbox.core.access_errors import CrossSite as CrossSite
from agentbox.core.access_errors import LastAdmin as LastAdmin
from agentbox.core.adapter_error import PROBLEM as PROBLEM
from agentbox.core.adapter_error import REQUEST as REQUEST
from agentbox.core.adapter_error import AdapterError as AdapterError
from agentbox.core.backup_errors import BackupBusy as BackupBusy
from agentbox.core.backup_errors import BackupNotSetUp as BackupNotSetUp
from agentbox.core.backup_errors import BackupRunning as BackupRunning
from agentbox.core.backup_errors import BackupUnusable as BackupUnusable
from agentbox.core.errors import AgentboxError
from agentbox.core.generation_errors import Held as Held
from agentbox.core.mcp_errors import McpDrift as McpDrift
from agentbox.core.mcp_errors import McpResult as McpResult
from agentbox.core.mcp_errors import McpTimeout as McpTimeout
from agentbox.core.mcp_errors import McpUnavailable as McpUnavailable
from agentbox.core.session_errors import AcpInvalid as AcpInvalid
from agentbox.core.session_errors import AcpTimeout as AcpTimeout
from agentbox.core.session_errors import AgentEnded as AgentEnded
from agentbox.core.session_errors import SessionBusy as SessionBusy
from agentbox.core.session_errors import SessionsFull as SessionsFull
from agentbox.core.session_errors import UnknownSession as UnknownSession


class AdapterDisabled(AdapterError):
    """The slot is configured `off`."""

    code, status, names = "adapter-disabled", 503, ("slot",)


class SlotUnavailable(AdapterError):
    """The slot is down, not open yet, or closed."""

    code, status, retryable, names = "slot-unavailable", 503, True, ("slot", "impl", "since")


class AdapterTimeout(AdapterError):
    code, status, retryable, names = "adapter-timeout", 504, True, ("slot", "method", "deadline_ms")


class BackendError(AdapterError):
    code, status, retryable, names = "backend-error", 502, True, ("slot", "impl")


class AdapterWriteRejected(AdapterError):
    """Redaction failed, and the policy of the slot is strict."""

    code, status, retryable, names = "redaction-unavailable", 503, True, ("slot", "method")


class RateLimited(AdapterError):
    code, status, retryable, names = "rate-limited", 429, True, ("limit",)


class ValidationError(AdapterError):
    """`errors` is a list of {pointer, detail}."""

    code, status, names = "validation", 400, ("errors",)


class NotFound(AdapterError):
    code, status, names = "not-found", 404, ("resource", "id")


class AlreadyClaimed(AdapterError):
    code, status, names = "already-claimed", 409, ("id", "assignee", "lease_expires_at")


class LeaseLost(AdapterError):
    code, status, names = "lease-lost", 409, ("id",)


class InvalidTransition(AdapterError):
    code, status, names = "invalid-transition", 409, ("id", "from", "to", "blockers")


class CycleRefused(AdapterError):
    code, status, names = "dependency-cycle", 409, ("path",)


class ContainerNotEmpty(AdapterError):
    code, status, names = "container-not-empty", 409, ("path",)


class ReviewConflict(AdapterError):
    """The workspace has changed since the branch started. `conflicts`: paths and reasons. Nothing
    was applied.
    """

    code, status, names = "review-conflict", 409, ("id", "conflicts")


class NoRepository(AdapterError):
    """The workspace has no git repository, so an agent's branch has no commits to take."""

    code, status, names = "no-repository", 409, ("id",)


class HistoryLeftOut(AdapterError):
    """The commits of a branch cannot be taken; the detail names what was left out."""

    code, status, names = "history-left-out", 409, ("id",)


class ObjectsBad(AdapterError):
    """Objects of a branch are damaged or refused; the detail has what git says."""

    code, status, names = "objects-bad", 409, ("id",)


class RefRefused(AdapterError):
    """HEAD of a branch names no branch that can be taken."""

    code, status, names = "ref-refused", 409, ("id",)


class TipDiffers(AdapterError):
    """The last commit lacks changes of the agent. `paths`: some of them and how they differ."""

    code, status, names = "tip-differs", 409, ("id", "paths")


class StateBusy(AdapterError):
    """Running agents use the state. `agents`: their ids."""

    code, status, names = "state-busy", 409, ("id", "agents")


class StateNotOwned(AdapterError):
    """The state belongs to another principal."""

    code, status, names = "state-not-yours", 403, ("id",)


class SandboxOver(AdapterError):
    """The sandbox has ended, or its time is up."""

    code, status, names = "sandbox-over", 410, ("id",)


class ExecLimit(AdapterError):
    """As many programs as `sandboxes.max_exec` allows run in the sandbox."""

    code, status, retryable, names = "exec-limit", 429, True, ("id", "observed", "cap")


class PathOutside(AdapterError):
    """The path leads out of the branch and the temporary directory of the sandbox, or follows a
    link.
    """

    code, status, names = "path-outside", 403, ("path",)


class FileTooLarge(AdapterError):
    """One call may move `sandboxes.max_file` bytes."""

    code, status, names = "file-too-large", 413, ("observed", "cap")


class NameTaken(AdapterError):
    code, status, names = "name-taken", 409, ("name",)


class StaleHandle(AdapterError):
    code, status, names = "stale-generation", 409, ("generation", "current")


class ModelMismatch(AdapterError):
    code, status, names = "model-mismatch", 409, ("stored", "configured")


class ContractMismatch(AdapterError):
    code, status, names = "contract-mismatch", 409, ("mismatches",)


class PreconditionFailed(AdapterError):
    code, status, names = "precondition-failed", 412, ("etag",)


class PermissionDenied(AdapterError):
    code, status, names = "permission-denied", 403, ("scope",)


class CursorExpired(AdapterError):
    code, status, names = "cursor-expired", 410, ("oldest",)


class ValueTooLarge(AdapterError):
    code, status, names = "value-too-large", 413, ("limit", "observed", "cap", "config_path")


class UnsupportedPatch(AdapterError):
    code, status, names = "unsupported-patch", 415, ("supported",)


class PatchFailed(AdapterError):
    code, status, names = "patch-failed", 422, ("index", "op")


class AlteredDelivery(AdapterError):
    """A delivered record does not match its hash."""

    code, status, names = "record-altered", 422, ("box", "seq")


class OriginConflict(AdapterError):
    """A box delivers records of a different journal than before."""

    code, status, names = "origin-conflict", 409, ("box", "seq")


class SpawnError(AdapterError):
    code, status, names = "spawn-failed", 422, ("stage",)


class QuotaExceeded(AdapterError):
    code, status, names = "quota-exceeded", 507, ("limit", "observed", "cap", "config_path")


def disk_full_error(action: str) -> QuotaExceeded:
    """The error for a write to a full disk (507)."""
    return QuotaExceeded(
        f"cannot {action}: the disk is full",
        hint="free space on the state volume",
        limit="disk",
        observed=None,
        cap=None,
        config_path="",
    )


def is_disk_full(error: OSError) -> bool:
    """Whether a write failed because the disk is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class EmbeddingError(AdapterError):
    code, status, names = "embedding-failed", 500, ("model",)


class IntegrityError(AdapterError):
    code, status, names = "integrity", 500, ("segment", "line", "seq")


def invalid_transition(
    detail: str, id: str, *, from_state: str, to_state: str, blockers: Sequence[str] = ()
) -> InvalidTransition:
    """An InvalidTransition; its member `from` is a Python keyword."""
    members: dict[str, Any] = {
        "id": id,
        "from": from_state,
        "to": to_state,
        "blockers": list(blockers),
    }
    return InvalidTransition(detail, **members)


class UnknownAdapterImpl(AgentboxError):
    """The plan names an unknown implementation. Ends the boot (exit 1)."""


ERRORS: Mapping[str, type[AdapterError]] = {
    kind.code: kind for kind in AdapterError.__subclasses__()
}

_BY_STATUS: Mapping[int, type[AdapterError]] = {
    401: PermissionDenied,
    403: PermissionDenied,
    404: NotFound,
    409: InvalidTransition,
    412: PreconditionFailed,
    413: ValueTooLarge,
    416: ValidationError,
    429: RateLimited,
    503: SlotUnavailable,
}


def from_problem(
    body: Mapping[str, Any], status: int, *, retry_after: float | None = None
) -> AdapterError:
    """The error for a peer's problem document; without a known code it is chosen by status."""
    kind = ERRORS.get(str(body.get("code"))) or _BY_STATUS.get(status, BackendError)
    members: dict[str, Any] = {name: body.get(name) for name in kind.names}
    return kind(
        str(body.get("detail") or f"the peer answered {status}"),
        hint=str(body.get("hint") or ""),
        retry_after=retry_after,
        **members,
    )
