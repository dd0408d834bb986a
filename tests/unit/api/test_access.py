"""Scopes: those of each kind of caller."""

import pytest

from agentbox.api.auth.authentication import ANONYMOUS, Caller, require
from agentbox.contracts.routes.registry import SCOPES
from agentbox.core.slot_errors import PermissionDenied


def test_admin_holds_all_but_core() -> None:
    """The operator is not a program, nor a box."""
    admin = Caller("x", frozenset({"admin"}))
    assert {scope for scope in SCOPES if not admin.has_scope(scope)} == {
        "core",
        "mesh:session",
        "token:self",
    }


def test_core_holds_no_scope_of_people() -> None:
    """A program of ours never approves, reviews, or administers."""
    core = Caller("x", frozenset({"core"}))
    assert {scope for scope in SCOPES if not core.has_scope(scope)} == {
        "admin", "reviews:write", "approvals:write", "mesh:admin", "mesh:session", "token:self",
        "users:admin", "session:self", "audit:read", "config:read",
    }  # fmt: skip


def test_a_named_scope_is_itself_only() -> None:
    """Reading is not writing."""
    reader = Caller("x", frozenset({"beads:read"}))
    assert [scope for scope in SCOPES if reader.has_scope(scope)] == ["beads:read"]
    named = Caller("x", frozenset({"beads:read"}), token_id="1")
    assert {scope for scope in SCOPES if named.has_scope(scope)} == {"beads:read", "token:self"}


def test_every_scope_of_a_row_is_needed() -> None:
    """The first missing one is named."""
    require(ANONYMOUS, ())
    with pytest.raises(PermissionDenied) as caught:
        require(Caller("x", frozenset({"agents:write"})), ("agents:write", "beads:write"))
    assert caught.value.members["scope"] == "beads:write"
