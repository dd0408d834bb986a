"""Errors of the slots and their problem documents."""

import pytest

from agentbox.core import slot_errors
from agentbox.core.slot_errors import ERRORS, AdapterError, from_problem

# The status of each code, and whether a retry may help.
TABLE = {
    "adapter-disabled": (503, False), "slot-unavailable": (503, True), "adapter-timeout": (504, True),
    "backend-error": (502, True), "redaction-unavailable": (503, True), "rate-limited": (429, True),
    "validation": (400, False), "not-found": (404, False), "already-claimed": (409, False), "lease-lost": (409, False),
    "invalid-transition": (409, False), "dependency-cycle": (409, False), "container-not-empty": (409, False),
    "stale-generation": (409, False), "model-mismatch": (409, False), "contract-mismatch": (409, False),
    "precondition-failed": (412, False), "permission-denied": (403, False), "cursor-expired": (410, False),
    "value-too-large": (413, False), "unsupported-patch": (415, False), "patch-failed": (422, False),
    "spawn-failed": (422, False), "quota-exceeded": (507, False), "embedding-failed": (500, False), "integrity": (500, False),
    "record-altered": (422, False), "origin-conflict": (409, False), "review-conflict": (409, False),
    "state-busy": (409, False), "state-not-yours": (403, False), "name-taken": (409, False),
    "no-repository": (409, False), "history-left-out": (409, False), "objects-bad": (409, False), "ref-refused": (409, False),
    "tip-differs": (409, False),
    "backup-running": (409, False), "backup-busy": (503, True), "backup-not-set-up": (409, False), "backup-unusable": (502, False),
    "unknown-session": (404, False), "session-busy": (409, False), "sessions-full": (429, True),
    "acp-timeout": (504, False), "acp-invalid": (502, False), "agent-ended": (502, False),
    "sandbox-over": (410, False), "exec-limit": (429, True), "path-outside": (403, False), "file-too-large": (413, False),
    "held": (503, True),
    "last-admin": (409, False), "cross-site": (403, False),
    "mcp-unavailable": (503, True), "mcp-drift": (409, False), "mcp-timeout": (504, False), "mcp-result": (502, False),
}  # fmt: skip


def test_the_table_is_that_of_the_specification():
    """Each code with its status and whether it may be tried again."""
    assert {code: (kind.status, kind.retryable) for code, kind in ERRORS.items()} == TABLE


@pytest.mark.parametrize("kind", ERRORS.values(), ids=lambda kind: kind.__name__)
def test_an_error_survives_its_problem(kind):
    """The same class, sentence, hint and members; a problem has the members of RFC 9457."""
    error = kind("cannot do it: so", hint="do this", **{name: [name] for name in kind.names})
    problem = error.to_problem("r1")
    assert problem["type"] == f"urn:agentbox:problem:{kind.code}"
    assert problem["instance"] == "urn:agentbox:request:r1"
    again = from_problem(problem, error.status)
    assert (type(again), again.message, again.hint, again.members) == (
        kind,
        error.message,
        "do this",
        error.members,
    )


def test_a_problem_without_a_hint_has_no_such_member():
    """An empty one says nothing."""
    assert "hint" not in slot_errors.NotFound("cannot find it", resource="x", id="y").to_problem()


def test_wrong_members_are_a_bug():
    """None missing, none more."""
    for members in ({}, {"resource": "x"}, {"resource": "x", "id": "y", "more": 1}):
        with pytest.raises(TypeError):
            slot_errors.NotFound("x", **members)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, slot_errors.PermissionDenied), (403, slot_errors.PermissionDenied), (404, slot_errors.NotFound),
        (409, slot_errors.InvalidTransition), (412, slot_errors.PreconditionFailed), (413, slot_errors.ValueTooLarge),
        (429, slot_errors.RateLimited), (503, slot_errors.SlotUnavailable), (500, slot_errors.BackendError), (418, slot_errors.BackendError),
    ],
)  # fmt: skip
def test_a_body_without_a_code_maps_by_status(status, kind):
    """As a peer that is no agentbox answers."""
    error = from_problem({"title": "no"}, status)
    assert type(error) is kind
    assert isinstance(error, AdapterError)
