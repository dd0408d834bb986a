"""Every row of the route table has its method, in both clients."""

import inspect
from operator import attrgetter

import pytest

from agentbox.client import AsyncBoxClient, BoxClient
from agentbox.contracts.routes.registry import ROUTES

METHODS = {
    "livez": "livez", "ready": "ready", "health": "health", "meta": "meta", "openapi": "openapi", "boot": "boot", "drain": "drain",
    "config_apply": "config_apply", "create_epic": "beads.create_epic", "create_child": "beads.create_child", "add_dep": "beads.add_dep",
    "remove_dep": "beads.remove_dep", "claim": "beads.claim", "claim_next": "beads.claim_next", "heartbeat": "beads.heartbeat",
    "release": "beads.release", "close_bead": "beads.close_bead", "ready_beads": "beads.ready", "list_beads": "beads.list", "show_bead": "beads.show",
    "write_pod": "pods.write", "patch_pod": "pods.patch", "delete_pod": "pods.delete", "read_pod": "pods.read", "options_pod": "pods.options",
    "store_memory": "memory.store", "retrieve_memory": "memory.retrieve", "delete_memory": "memory.delete", "list_memory": "memory.list",
    "search_memory": "memory.search", "memory_stats": "memory.stats", "append_events": "events.append", "read_events": "events.read",
    "stream_events": "events.subscribe", "head_event": "events.head", "event_delivery": "events.delivery", "show_event": "events.show",
    "search_events": "events.search", "event_stats": "events.stats",
    "verify_events": "events.verify", "spawn": "agents.spawn", "run_once": "agents.run_once", "list_agents": "agents.list",
    "get_agent": "agents.get", "stream_agent": "agents.stream", "signal_agent": "agents.signal", "terminate_agent": "agents.terminate",
    "attach_agent": "agents.attach", "revoke_grant": "agents.revoke", "submit_task": "submit_task", "list_tasks": "list_tasks", "get_task": "get_task", "task_logs": "task_logs",
    "cancel_task": "cancel_task", "list_tokens": "tokens.list", "create_token": "tokens.create", "revoke_token": "tokens.revoke", "enable_token": "tokens.enable",
    "revoke_own_token": "tokens.revoke_self",
    "list_users": "users.list", "add_user": "users.add", "set_user_role": "users.set_role", "disable_user": "users.disable",
    "enable_user": "users.enable", "make_login_code": "users.make_code",
    "sign_in": "logins.sign_in", "whoami": "logins.whoami", "sign_out": "logins.sign_out", "make_own_code": "logins.make_own_code",
    "list_logins": "logins.list", "end_login": "logins.end",
    "show_generation": "generation.show", "release_generation": "generation.release", "try_agent": "generation.try_agent",
    "mesh_register": "mesh.register", "mesh_heartbeat": "mesh.heartbeat", "mesh_deregister": "mesh.deregister", "mesh_sessions": "mesh.list_sessions",
    "mesh_session": "mesh.show_session", "mesh_evict": "mesh.evict", "mesh_status": "mesh.status", "mesh_join": "mesh.join",
    "list_reviews": "reviews.list", "show_review": "reviews.show", "commit_review": "reviews.commit",
    "show_review_commits": "reviews.commits", "read_review_bundle": "reviews.bundle",
    "read_review_patches": "reviews.patches", "end_review": "reviews.taken",
    "discard_review": "reviews.discard", "list_approvals": "approvals.list", "get_approval": "approvals.get",
    "start_sandbox": "sandboxes.create", "list_sandboxes": "sandboxes.list", "show_sandbox": "sandboxes.show",
    "end_sandbox": "sandboxes.end", "exec_sandbox": "sandboxes.exec", "stream_exec": "sandboxes.stream",
    "signal_exec": "sandboxes.signal", "attach_exec": "sandboxes.attach",
    "read_sandbox_file": "sandbox_files.read", "write_sandbox_file": "sandbox_files.write", "remove_sandbox_file": "sandbox_files.remove",
    "open_session": "sessions.create", "list_sessions": "sessions.list", "show_session": "sessions.show", "close_session": "sessions.close",
    "prompt_session": "sessions.prompt", "cancel_session": "sessions.cancel", "configure_session": "sessions.configure",
    "suspend_session": "sessions.suspend", "resume_session": "sessions.resume", "decide_permission": "sessions.decide",
    "stream_session": "sessions.stream", "read_transcript": "sessions.transcript",
    "list_states": "states.list", "adopt_state": "states.adopt", "show_state": "states.show", "remove_state": "states.remove",
    "usage_report": "usage.report",
    "create_backup": "backups.create", "list_backups": "backups.list", "get_backup": "backups.get",
    "verify_backup": "backups.verify", "backup_archive": "backups.archive",
    "list_mcp_servers": "mcp.list_servers", "show_mcp_server": "mcp.show_server", "test_mcp_server": "mcp.test_server",
    "pin_mcp_server": "mcp.pin_server", "restart_mcp_server": "mcp.restart_server",
    "decide_approval": "approvals.decide", "list_skills": "skills.list", "mesh_outbox": "mesh.outbox", "mesh_drop": "mesh.drop",
}  # fmt: skip

# What editors speak over it is no operation: agentbox/host/acp is the client.
OF_EDITORS = {"connect_editor"}
SERVED = [route for route in ROUTES if route.listener == "api" and route.name not in OF_EDITORS]


@pytest.mark.parametrize("route", SERVED, ids=lambda route: route.name)
async def test_a_route_has_its_method(route):
    """Of the same name and the same arguments, waited for in one and awaited in the other."""
    async with AsyncBoxClient("http://127.0.0.1:1") as other:
        with BoxClient("http://127.0.0.1:1") as client:
            waits, awaits = (attrgetter(METHODS[route.name])(one) for one in (client, other))
    assert list(inspect.signature(waits).parameters) == list(inspect.signature(awaits).parameters)
    assert not inspect.iscoroutinefunction(waits)
    whole = inspect.unwrap(awaits)
    assert inspect.iscoroutinefunction(whole) or inspect.isasyncgenfunction(whole)


def test_no_method_is_of_a_route_that_is_gone():
    """The list is the table's."""
    assert set(METHODS) == {route.name for route in SERVED}
