"""Tasks over HTTP."""

from dataclasses import replace

from agentbox.api.auth.access import require
from agentbox.api.http.call import Call
from agentbox.api.http.reply import EventStream, Reply
from agentbox.contracts.beads import LIMIT
from agentbox.contracts.tasks import TaskBody

DEFAULT_PAGE = 100


async def submit(call: Call) -> Reply:
    body = call.record(TaskBody)
    if body.spec.workspace == "direct":
        require(call.caller, ("admin",))
    request = replace(body, dedup_key=call.dedup_key(body.dedup_key))
    task = await call.services.tasks.submit(
        request, call.caller.principal, admin=call.caller.has_scope("admin")
    )
    return Reply({"task_id": task.task_id, "state": task.state}, status=202)


async def list_tasks(call: Call) -> Reply:
    limit = call.integer("limit", DEFAULT_PAGE, *LIMIT)
    items, cursor = await call.services.tasks.page(limit, call.query.get("cursor"))
    return Reply({"items": [task.to_wire() for task in items], "next_cursor": cursor})


async def get(call: Call) -> Reply:
    return Reply((await call.services.tasks.show(call.parameters["id"])).to_wire())


async def cancel(call: Call) -> Reply:
    """Returns when the agent has ended and the bead is closed."""
    task = await call.services.tasks.cancel(call.parameters["id"], call.caller.principal)
    return Reply(task.to_wire())


async def logs(call: Call) -> EventStream:
    """An unknown task is 404, and a trimmed cursor 410, before the first byte."""
    output, task_id = call.services.tasks.output, call.parameters["id"]
    since, follow = call.since(0) or 0, call.boolean("follow", True)
    task, reader = await output.check(task_id, since), call.caller.principal
    events = output.follow(task_id, since, follow, reader)
    # An attached reader may be slow: the agent waits for it, and its time limit bounds both.
    return (
        EventStream(events, stall_seconds=task.timeout_s)
        if output.is_attached(task, reader)
        else EventStream(events)
    )
