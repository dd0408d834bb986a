# Written by tools/request_lines.py from agentbox/contracts.
"""What a client needs of each operation, by the name of its route."""

from collections.abc import Mapping
from typing import Final

from agentbox.contracts.routes.request_line import RequestLine


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


REQUEST_LINES: Final[Mapping[str, RequestLine]] = {
    line.name: line
    for line in (
        RequestLine("livez", "GET", "/livez", (), False, "livez", True),
        RequestLine("ready", "GET", "/ready", (), False, "ready", True),
        RequestLine("health", "GET", "/health", (), False, "health", True),
        RequestLine("meta", "GET", "/v1/meta", (), False, "meta", True),
        RequestLine("metrics", "GET", "/metrics", (), False, "metrics", True),
        RequestLine("openapi", "GET", "/openapi.json", (), False, "openapi", True),
        RequestLine("boot", "GET", "/v1/boot", ("boot_id",), False, "boot", True),
        RequestLine("drain", "POST", "/v1/drain", (), False, "drain", False),
        RequestLine("config_apply", "POST", "/v1/config/apply", (), False, "apply", False),
        RequestLine("create_epic", "POST", "/v1/beads/epics", (), False, "create_epic", False),
        RequestLine(
            "create_child", "POST", "/v1/beads/{id}/children", (), False, "create_child", False
        ),
        RequestLine("add_dep", "PUT", "/v1/beads/{id}/deps/{blocker}", (), False, "add_dep", True),
        RequestLine(
            "remove_dep", "DELETE", "/v1/beads/{id}/deps/{blocker}", (), False, "remove_dep", True
        ),
        RequestLine("claim", "POST", "/v1/beads/{id}/claim", (), False, "claim", True),
        RequestLine("claim_next", "POST", "/v1/beads/claims", (), False, "claim_next", True),
        RequestLine("heartbeat", "POST", "/v1/beads/{id}/heartbeat", (), False, "heartbeat", True),
        RequestLine("release", "POST", "/v1/beads/{id}/release", (), False, "release", False),
        RequestLine("close_bead", "POST", "/v1/beads/{id}/close", (), False, "close_bead", True),
        RequestLine(
            "ready_beads",
            "GET",
            "/v1/beads/ready",
            _names("parent_id limit cursor"),
            False,
            "ready",
            True,
        ),
        RequestLine(
            "list_beads",
            "GET",
            "/v1/beads",
            _names("status kind parent_id tag assignee creator id_prefix limit cursor"),
            False,
            "list",
            True,
        ),
        RequestLine("show_bead", "GET", "/v1/beads/{id}", (), False, "show", True),
        RequestLine("write_pod", "PUT", "/v1/pods/{path*}", (), False, "write", False),
        RequestLine("patch_pod", "PATCH", "/v1/pods/{path*}", (), False, "patch", False),
        RequestLine("delete_pod", "DELETE", "/v1/pods/{path*}", (), False, "delete", False),
        RequestLine(
            "read_pod", "GET", "/v1/pods/{path*}", ("limit", "cursor"), False, "read", True
        ),
        RequestLine("options_pod", "OPTIONS", "/v1/pods/{path*}", (), False, "options", True),
        RequestLine(
            "store_memory", "PUT", "/v1/memory/ns/{ns}/keys/{key}", (), False, "store", True
        ),
        RequestLine(
            "retrieve_memory", "GET", "/v1/memory/ns/{ns}/keys/{key}", (), False, "retrieve", True
        ),
        RequestLine(
            "delete_memory", "DELETE", "/v1/memory/ns/{ns}/keys/{key}", (), False, "delete", True
        ),
        RequestLine(
            "list_memory",
            "GET",
            "/v1/memory/ns/{ns}/keys",
            _names("prefix filter limit cursor"),
            False,
            "list",
            True,
        ),
        RequestLine("search_memory", "POST", "/v1/memory/search", (), False, "search", True),
        RequestLine(
            "memory_stats", "GET", "/v1/memory/stats", ("namespace",), False, "stats", True
        ),
        RequestLine("append_events", "POST", "/v1/events", (), False, "append", False),
        RequestLine(
            "read_events",
            "GET",
            "/v1/events",
            _names("since limit types source subject agent_id session_id"),
            False,
            "read",
            True,
        ),
        RequestLine(
            "stream_events",
            "GET",
            "/v1/events/stream",
            _names("since types source subject agent_id session_id"),
            True,
            "subscribe",
            True,
        ),
        RequestLine("head_event", "GET", "/v1/events/head", (), False, "head", True),
        RequestLine(
            "event_delivery", "GET", "/v1/events/delivery", ("limit",), False, "delivery", True
        ),
        RequestLine("verify_events", "POST", "/v1/events/verify", (), False, "verify", True),
        RequestLine(
            "search_events",
            "GET",
            "/v1/events/search",
            _names("words types agent_id session_id trace_id since until limit cursor"),
            False,
            "search",
            True,
        ),
        RequestLine("event_stats", "GET", "/v1/events/stats", (), False, "stats", True),
        RequestLine("show_event", "GET", "/v1/events/{seq}", (), False, "show", True),
        RequestLine("spawn", "POST", "/v1/agents", (), False, "spawn", True),
        RequestLine("run_once", "POST", "/v1/runs", (), False, "run_once", False),
        RequestLine(
            "list_agents",
            "GET",
            "/v1/agents",
            _names("state name parent_id label limit cursor"),
            False,
            "list",
            True,
        ),
        RequestLine("get_agent", "GET", "/v1/agents/{id}", (), False, "get", True),
        RequestLine(
            "stream_agent",
            "GET",
            "/v1/agents/{id}/stream",
            ("since", "follow"),
            True,
            "stream",
            True,
        ),
        RequestLine("signal_agent", "POST", "/v1/agents/{id}/signal", (), False, "signal", False),
        RequestLine(
            "terminate_agent",
            "DELETE",
            "/v1/agents/{id}",
            ("generation", "grace_s"),
            False,
            "terminate",
            True,
        ),
        RequestLine(
            "revoke_grant", "DELETE", "/v1/agents/{id}/grants/{grant_id}", (), False, "revoke", True
        ),
        RequestLine(
            "attach_agent", "GET", "/v1/agents/{id}/attach", ("generation",), False, "attach", False
        ),
        RequestLine("submit_task", "POST", "/v1/tasks", (), False, "submit", False),
        RequestLine(
            "list_tasks", "GET", "/v1/tasks", ("limit", "cursor"), False, "list_tasks", True
        ),
        RequestLine("get_task", "GET", "/v1/tasks/{id}", (), False, "get", True),
        RequestLine(
            "task_logs", "GET", "/v1/tasks/{id}/logs", ("since", "follow"), True, "logs", True
        ),
        RequestLine("cancel_task", "DELETE", "/v1/tasks/{id}", (), False, "cancel", False),
        RequestLine("list_reviews", "GET", "/v1/reviews", (), False, "list_reviews", True),
        RequestLine(
            "show_review", "GET", "/v1/reviews/{agent_id}", ("at", "limit"), False, "show", True
        ),
        RequestLine(
            "commit_review", "POST", "/v1/reviews/{agent_id}/commit", (), False, "commit", False
        ),
        RequestLine(
            "show_review_commits",
            "GET",
            "/v1/reviews/{agent_id}/commits",
            ("at", "limit"),
            False,
            "commits",
            True,
        ),
        RequestLine(
            "read_review_bundle",
            "GET",
            "/v1/reviews/{agent_id}/bundle",
            ("rest",),
            False,
            "bundle",
            True,
        ),
        RequestLine(
            "read_review_patches",
            "GET",
            "/v1/reviews/{agent_id}/patches",
            ("rest",),
            False,
            "patches",
            True,
        ),
        RequestLine(
            "end_review", "POST", "/v1/reviews/{agent_id}/commits/taken", (), False, "taken", False
        ),
        RequestLine(
            "discard_review", "POST", "/v1/reviews/{agent_id}/discard", (), False, "discard", False
        ),
        RequestLine("list_approvals", "GET", "/v1/approvals", (), False, "list_approvals", True),
        RequestLine("get_approval", "GET", "/v1/approvals/{id}", (), False, "get", True),
        RequestLine("decide_approval", "POST", "/v1/approvals/{id}", (), False, "decide", False),
        RequestLine(
            "list_states",
            "GET",
            "/v1/states",
            _names("limit cursor legacy"),
            False,
            "list_states",
            True,
        ),
        RequestLine("adopt_state", "POST", "/v1/states", (), False, "adopt", False),
        RequestLine("show_state", "GET", "/v1/states/{id}", (), False, "show", True),
        RequestLine("remove_state", "DELETE", "/v1/states/{id}", (), False, "remove", False),
        RequestLine(
            "usage_report", "GET", "/v1/usage", _names("by since limit"), False, "report", True
        ),
        RequestLine("list_skills", "GET", "/v1/skills", (), False, "list_skills", True),
        RequestLine("start_sandbox", "POST", "/v1/sandboxes", (), False, "create", True),
        RequestLine(
            "list_sandboxes", "GET", "/v1/sandboxes", ("limit", "cursor"), False, "list", True
        ),
        RequestLine("show_sandbox", "GET", "/v1/sandboxes/{id}", (), False, "show", True),
        RequestLine(
            "end_sandbox", "DELETE", "/v1/sandboxes/{id}", ("grace_s",), False, "end", True
        ),
        RequestLine("exec_sandbox", "POST", "/v1/sandboxes/{id}/exec", (), False, "exec", True),
        RequestLine(
            "stream_exec",
            "GET",
            "/v1/sandboxes/{id}/exec/{n}/stream",
            ("since", "follow"),
            True,
            "stream",
            True,
        ),
        RequestLine(
            "signal_exec", "POST", "/v1/sandboxes/{id}/exec/{n}/signal", (), False, "signal", False
        ),
        RequestLine(
            "attach_exec", "GET", "/v1/sandboxes/{id}/exec/{n}/attach", (), False, "attach", False
        ),
        RequestLine(
            "read_sandbox_file", "GET", "/v1/sandboxes/{id}/files/{path*}", (), False, "read", True
        ),
        RequestLine(
            "write_sandbox_file",
            "PUT",
            "/v1/sandboxes/{id}/files/{path*}",
            (),
            False,
            "write",
            True,
        ),
        RequestLine(
            "remove_sandbox_file",
            "DELETE",
            "/v1/sandboxes/{id}/files/{path*}",
            (),
            False,
            "remove",
            False,
        ),
        RequestLine("open_session", "POST", "/v1/sessions", (), False, "create", True),
        RequestLine(
            "list_sessions", "GET", "/v1/sessions", ("limit", "cursor"), False, "list", True
        ),
        RequestLine("show_session", "GET", "/v1/sessions/{id}", (), False, "show", True),
        RequestLine("close_session", "DELETE", "/v1/sessions/{id}", (), False, "close", True),
        RequestLine(
            "prompt_session", "POST", "/v1/sessions/{id}/prompt", (), False, "prompt", True
        ),
        RequestLine(
            "cancel_session", "POST", "/v1/sessions/{id}/cancel", (), False, "cancel", True
        ),
        RequestLine(
            "configure_session", "POST", "/v1/sessions/{id}/config", (), False, "configure", True
        ),
        RequestLine(
            "suspend_session", "POST", "/v1/sessions/{id}/suspend", (), False, "suspend", True
        ),
        RequestLine(
            "resume_session", "POST", "/v1/sessions/{id}/resume", (), False, "resume", True
        ),
        RequestLine(
            "decide_permission",
            "POST",
            "/v1/sessions/{id}/permissions/{pid}",
            (),
            False,
            "decide",
            False,
        ),
        RequestLine(
            "stream_session",
            "GET",
            "/v1/sessions/{id}/stream",
            ("since", "follow"),
            True,
            "stream",
            True,
        ),
        RequestLine(
            "read_transcript",
            "GET",
            "/v1/sessions/{id}/transcript",
            ("since", "limit"),
            False,
            "transcript",
            True,
        ),
        RequestLine(
            "connect_editor",
            "GET",
            "/v1/acp",
            _names("connection since agent session"),
            False,
            "connect",
            False,
        ),
        RequestLine("list_mcp_servers", "GET", "/v1/mcp/servers", (), False, "list_servers", True),
        RequestLine(
            "show_mcp_server", "GET", "/v1/mcp/servers/{name}", (), False, "show_server", True
        ),
        RequestLine(
            "test_mcp_server",
            "POST",
            "/v1/mcp/servers/{name}/test",
            (),
            False,
            "test_server",
            False,
        ),
        RequestLine(
            "pin_mcp_server", "POST", "/v1/mcp/servers/{name}/pin", (), False, "pin_server", False
        ),
        RequestLine(
            "restart_mcp_server",
            "POST",
            "/v1/mcp/servers/{name}/restart",
            (),
            False,
            "restart_server",
            False,
        ),
        RequestLine("list_tokens", "GET", "/v1/tokens", (), False, "list_tokens", True),
        RequestLine("create_token", "POST", "/v1/tokens", (), False, "create", False),
        RequestLine("enable_token", "POST", "/v1/tokens/{id}/enable", (), False, "enable", False),
        RequestLine("revoke_token", "DELETE", "/v1/tokens/{id}", (), False, "revoke", False),
        RequestLine("revoke_own_token", "DELETE", "/v1/token", (), False, "revoke_self", False),
        RequestLine("list_users", "GET", "/v1/users", (), False, "list_users", True),
        RequestLine("add_user", "POST", "/v1/users", (), False, "add", False),
        RequestLine("set_user_role", "POST", "/v1/users/{name}/role", (), False, "set_role", False),
        RequestLine(
            "disable_user", "POST", "/v1/users/{name}/disable", (), False, "disable", False
        ),
        RequestLine("enable_user", "POST", "/v1/users/{name}/enable", (), False, "enable", False),
        RequestLine(
            "make_login_code", "POST", "/v1/users/{name}/login", (), False, "make_code", False
        ),
        RequestLine("sign_in", "POST", "/v1/session", (), False, "sign_in", False),
        RequestLine("whoami", "GET", "/v1/session", (), False, "whoami", True),
        RequestLine("sign_out", "DELETE", "/v1/session", (), False, "sign_out", False),
        RequestLine("make_own_code", "POST", "/v1/session/code", (), False, "make_own_code", False),
        RequestLine("list_logins", "GET", "/v1/logins", (), False, "list_logins", True),
        RequestLine("end_login", "DELETE", "/v1/logins/{id}", (), False, "end", False),
        RequestLine("create_backup", "POST", "/v1/backups", (), False, "create", False),
        RequestLine("list_backups", "GET", "/v1/backups", (), False, "list_backups", True),
        RequestLine("get_backup", "GET", "/v1/backups/{id}", (), False, "get", True),
        RequestLine("verify_backup", "POST", "/v1/backups/{id}/verify", (), False, "verify", False),
        RequestLine(
            "backup_archive", "GET", "/v1/backups/{id}/archive", (), False, "archive", True
        ),
        RequestLine("mesh_register", "POST", "/v1/register", (), False, "register", False),
        RequestLine("mesh_heartbeat", "POST", "/v1/heartbeat", (), False, "heartbeat", False),
        RequestLine("mesh_deregister", "POST", "/v1/deregister", (), False, "deregister", False),
        RequestLine(
            "mesh_sessions",
            "GET",
            "/v1/mesh/sessions",
            _names("state instance image limit cursor"),
            False,
            "list_sessions",
            True,
        ),
        RequestLine(
            "mesh_session", "GET", "/v1/mesh/sessions/{id}", (), False, "show_session", True
        ),
        RequestLine("mesh_evict", "DELETE", "/v1/mesh/sessions/{id}", (), False, "evict", False),
        RequestLine("mesh_status", "GET", "/v1/mesh/status", (), False, "status", True),
        RequestLine("mesh_join", "POST", "/v1/mesh/join", (), False, "join", False),
        RequestLine("mesh_outbox", "GET", "/v1/mesh/outbox", (), False, "outbox", True),
        RequestLine("mesh_drop", "DELETE", "/v1/mesh/outbox/{id}", (), False, "drop", False),
        RequestLine("show_generation", "GET", "/v1/generation", (), False, "show", True),
        RequestLine("release_generation", "POST", "/v1/release", (), False, "release", False),
        RequestLine("try_agent", "POST", "/v1/generation/agent", (), False, "try_agent", False),
    )
}
