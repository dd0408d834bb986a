"""Tasks over HTTP."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from agentbox.api.auth.access import require
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.beads import LIMIT
from agentbox.contracts.tasks import TaskBody
from agentbox.core.http.responses import EventStreamResponse

DEFAULT_PAGE = 100


async def submit(request: ApiRequest) -> Mapping[str, Any]:
    body = request.record(TaskBody)
    if body.spec.workspace == "direct":
        require(request.caller, ("admin",))
    task_body = replace(body, dedup_key=request.dedup_key(body.dedup_key))
    task = await request.services.tasks.submit(
        task_body, request.caller.principal, admin=request.caller.has_scope("admin")
    )
    return {"task_id": task.task_id, "state": task.state}


async def list_tasks(request: ApiRequest) -> Mapping[str, Any]:
    limit = request.integer("limit", DEFAULT_PAGE, *LIMIT)
    items, cursor = await request.services.tasks.page(limit, request.query.get("cursor"))
    return {"items": [task.to_wire() for task in items], "next_cursor": cursor}


async def get(request: ApiRequest) -> Mapping[str, Any]:
    return (await request.services.tasks.show(request.parameters["id"])).to_wire()


async def cancel(request: ApiRequest) -> Mapping[str, Any]:
    """Returns when the agent has ended and the bead is closed."""
    task = await request.services.tasks.cancel(request.parameters["id"], request.caller.principal)
    return task.to_wire()


async def logs(request: ApiRequest) -> Response:
    """An unknown task is 404, and a trimmed cursor 410, before the first byte."""
    output, task_id = request.services.tasks.output, request.parameters["id"]
    since, follow = request.since(0) or 0, request.boolean("follow", True)
    task, reader = await output.check(task_id, since), request.caller.principal
    events = output.follow(task_id, since, follow, reader)
    # An attached reader may be slow: the agent waits for it, and its time limit bounds both.
    stall_seconds = task.timeout_s if output.is_attached(task, reader) else None
    return EventStreamResponse(events, request.services.closing, stall_seconds=stall_seconds)
