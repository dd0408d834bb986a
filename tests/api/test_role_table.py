"""Walks the route table: each route answers 403 to each role below its own, and 401 to nobody's
caller. The roles of each route are written down here: a change of a scope is one of this table."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.api_box import ApiBox
from support.signed_in import Browser, signed_in

from agentbox.contracts.roles import ROLES, SCOPES_OF
from agentbox.contracts.routes.registry import ROUTES
from agentbox.contracts.routes.route import Route

ALL = frozenset(ROLES)
ADMIN = frozenset({"admin"})
OPERATOR = ADMIN | {"operator"}
REVIEWER = OPERATOR | {"reviewer"}
JOURNAL = REVIEWER | {"auditor"}
AUDITOR = ADMIN | {"auditor"}
# Who may call each route that is not public. Those of the mesh are other boxes'.
ALLOWED: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            "list_beads", "ready_beads", "show_bead", "list_agents", "get_agent", "stream_agent", "list_tasks", "get_task",
            "task_logs", "list_reviews", "show_review", "show_review_commits", "read_review_bundle", "read_review_patches",
            "list_approvals", "get_approval", "list_states", "show_state", "usage_report", "list_skills", "list_sandboxes",
            "show_sandbox", "stream_exec", "read_sandbox_file", "list_sessions", "show_session", "stream_session",
            "read_transcript", "list_mcp_servers", "show_mcp_server", "show_generation",
            "whoami", "sign_out", "make_own_code", "list_logins", "end_login",
        ),
        ALL,
    ),
    **dict.fromkeys(
        ("boot", "read_events", "stream_events", "head_event", "event_delivery", "search_events", "event_stats", "show_event"),
        JOURNAL,
    ),
    **dict.fromkeys(("verify_events", "list_backups", "get_backup", "backup_archive"), AUDITOR),
    **dict.fromkeys(
        ("commit_review", "end_review", "discard_review", "decide_approval"), REVIEWER
    ),
    **dict.fromkeys(
        (
            "create_epic", "create_child", "add_dep", "remove_dep", "claim", "claim_next", "heartbeat", "release", "close_bead",
            "write_pod", "patch_pod", "delete_pod", "read_pod", "options_pod",
            "store_memory", "retrieve_memory", "delete_memory", "list_memory", "search_memory", "memory_stats",
            "spawn", "run_once", "signal_agent", "terminate_agent", "attach_agent", "revoke_grant",
            "submit_task", "cancel_task", "remove_state",
            "start_sandbox", "end_sandbox", "exec_sandbox", "signal_exec", "attach_exec", "write_sandbox_file", "remove_sandbox_file",
            "open_session", "close_session", "prompt_session", "cancel_session", "configure_session", "suspend_session",
            "resume_session", "decide_permission", "connect_editor",
            "test_mcp_server", "pin_mcp_server", "restart_mcp_server",
            "create_backup", "verify_backup",
        ),
        OPERATOR,
    ),
    **dict.fromkeys(
        (
            "drain", "config_apply", "append_events", "adopt_state", "release_generation", "try_agent",
            "list_tokens", "create_token", "enable_token", "revoke_token",
            "list_users", "add_user", "set_user_role", "disable_user", "enable_user", "make_login_code",
            "mesh_register", "mesh_sessions", "mesh_session", "mesh_evict", "mesh_status", "mesh_join", "mesh_outbox", "mesh_drop",
        ),
        ADMIN,
    ),
    # A named token that revokes itself; the token of a mesh session.
    **dict.fromkeys(("revoke_own_token", "mesh_heartbeat", "mesh_deregister"), frozenset()),
}  # fmt: skip
GUARDED = tuple(route for route in ROUTES if not route.is_public and route.listener == "api")


@pytest.fixture(scope="module")
def box(prefix: Any) -> Iterator[ApiBox]:
    """A box without agents: no call gets that far."""
    with ApiBox(prefix, orchestrator=False) as running:
        yield running


@pytest.fixture(scope="module")
def pages(box: ApiBox) -> Iterator[dict[str, Browser]]:
    """A user of each role, signed in."""
    with box.client() as client:
        for role in ROLES:
            client.users.add(f"a-{role}", role)
    made = {role: signed_in(box, f"a-{role}") for role in ROLES}
    yield made
    for page in made.values():
        page.http.close()


def request_of(route: Route) -> tuple[str, str, dict[str, str | None]]:
    """Method, URL and headers of a request that reaches the check of scopes."""
    headers: dict[str, str | None] = {}
    if route.socket:
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        }
    return route.method, route.url(dict.fromkeys(route.parameters, "x")), headers


def test_the_table_names_each_route() -> None:
    """A new route has its roles decided; a scope that changes is noticed."""
    assert set(ALLOWED) == {route.name for route in GUARDED}
    public = {route.name for route in ROUTES if route.is_public}
    assert public == {"livez", "ready", "health", "meta", "metrics", "openapi", "sign_in"}


def test_roles_hold_what_the_table_says() -> None:
    """The same by the scopes alone, so that also the allowed ones are exact."""
    from agentbox.api.auth.authentication import Caller

    for role in ROLES:
        caller = Caller("x", SCOPES_OF[role], user="x", role=role)
        may = {route.name for route in GUARDED if all(map(caller.has_scope, route.scope))}
        assert may == {name for name, roles in ALLOWED.items() if role in roles}, role


def test_every_route_refuses_each_role_below_its_own(
    box: ApiBox, pages: dict[str, Browser]
) -> None:
    """403 with the scope that is missing, by session and by token; and 401 without a credential."""
    tokens = {}
    with box.client() as client:
        for role in ROLES:
            scopes = sorted(SCOPES_OF[role])
            tokens[role] = client.tokens.create(f"t-{role}", scopes, user=f"a-{role}").value
    wrong: list[tuple[str, str, int, str]] = []
    with httpx.Client(base_url=box.url) as http:
        for route in GUARDED:
            method, url, headers = request_of(route)
            bare = http.request(method, url, headers={k: v for k, v in headers.items() if v})
            if bare.status_code != 401:
                wrong.append((route.name, "nobody", bare.status_code, bare.text[:80]))
            for role in ROLES:
                if role in ALLOWED[route.name]:
                    continue
                bearer = {**headers, "Authorization": f"Bearer {tokens[role]}"}
                answers = [pages[role].send(method, url, headers)]
                if route.name != "revoke_own_token":  # a token has this right, a session not
                    sent = {name: value for name, value in bearer.items() if value}
                    answers.append(http.request(method, url, headers=sent))
                wrong += [
                    (route.name, role, answer.status_code, answer.text[:80])
                    for answer in answers
                    if answer.status_code != 403 or answer.json()["code"] != "permission-denied"
                ]
    assert wrong == []


def test_no_role_is_unknown_to_a_route_of_its_own(pages: dict[str, Browser]) -> None:
    """Reads that are allowed are served, not refused: 401 and 403 to nobody who may."""
    wrong = []
    reads = [route for route in GUARDED if route.method == "GET" and not route.socket]
    for route in reads:
        if route.stream:
            continue
        for role in ALLOWED[route.name]:
            method, url, headers = request_of(route)
            answer = pages[role].send(method, url, headers)
            refused = answer.status_code == 403 and answer.json()["code"] == "permission-denied"
            if refused or answer.status_code in (401, 500):
                wrong.append((route.name, role, answer.status_code, answer.text[:80]))
    assert wrong == []
