"""Routes of the slot orchestrator, and tasks, which are beads that run an agent."""

from agentbox.contracts.routes.route import Route

READ, WRITE = ("agents:read",), ("agents:write",)
TASK_WRITE = ("agents:write", "beads:write")
_PAGE = ("limit", "cursor")

AGENTS: tuple[Route, ...] = (
    Route(
        name="spawn", method="POST", path="/v1/agents", scope=WRITE, handler="agents.spawn", request="NewAgent",
        response="AgentInfo", statuses=(201,), body_limit=None, headers=("Idempotency-Key",),
        summary="Starts an agent. `Idempotency-Key` is the request id: the same one gives the same agent.",
    ),
    Route(
        name="run_once", method="POST", path="/v1/runs", scope=WRITE, handler="agents.run_once", request="RunBody",
        response="RunResult", body_limit=None, headers=("Idempotency-Key",), summary="Runs a program to its end and answers its output.",
    ),
    Route(
        name="list_agents", method="GET", path="/v1/agents", scope=READ, handler="agents.list_agents",
        response="Page[AgentInfo]", query=("state", "name", "parent_id", "label", *_PAGE), summary="Agents by filter.",
    ),
    Route(
        name="get_agent", method="GET", path="/v1/agents/{id}", scope=READ, handler="agents.get", response="AgentInfo",
        summary="One agent.",
    ),
    Route(
        name="stream_agent", method="GET", path="/v1/agents/{id}/stream", scope=READ, handler="agents.stream",
        response="StreamItem", query=("since", "follow"), stream=True,
        summary="Output and life of an agent, from the start or after `since` or Last-Event-ID.",
    ),
    Route(
        name="signal_agent", method="POST", path="/v1/agents/{id}/signal", scope=WRITE, handler="agents.signal",
        request="SignalBody", statuses=(204,), body_limit=None, summary="Sends a signal to the agent's tree.",
    ),
    Route(
        name="terminate_agent", method="DELETE", path="/v1/agents/{id}", scope=WRITE, handler="agents.terminate",
        response="ExitRecord", query=("generation", "grace_s"), summary="Ends an agent's tree; answers how it ended.",
    ),
    Route(
        name="revoke_grant", method="DELETE", path="/v1/agents/{id}/grants/{grant_id}", scope=WRITE, handler="agents.revoke",
        response="AgentInfo", summary="Takes a grant back, from all that descends from the agent too; answers the agent.",
    ),
    Route(
        name="attach_agent", method="GET", path="/v1/agents/{id}/attach", scope=WRITE, handler="agents.attach",
        statuses=(101,), query=("generation",), socket=True,
        summary="A WebSocket on the agent's pipes, one holder at a time: binary messages are bytes of stdin and stdout, an empty "
        "one closes stdin, a text is a problem. It ends with the agent's output.",
    ),
)  # fmt: skip

TASKS: tuple[Route, ...] = (
    Route(
        name="submit_task", method="POST", path="/v1/tasks", scope=TASK_WRITE, handler="tasks.submit",
        request="TaskBody", response="Submitted", statuses=(202,), body_limit=None, headers=("Idempotency-Key",),
        summary="Queues one run of a program. A bead is its receipt.",
    ),
    Route(
        name="list_tasks", method="GET", path="/v1/tasks", scope=READ, handler="tasks.list_tasks",
        response="Page[Task]", query=_PAGE, summary="Tasks, in order of id.",
    ),
    Route(
        name="get_task", method="GET", path="/v1/tasks/{id}", scope=READ, handler="tasks.get", response="Task",
        summary="One task.",
    ),
    Route(
        name="task_logs", method="GET", path="/v1/tasks/{id}/logs", scope=READ, handler="tasks.logs",
        response="StreamItem", last="Task", query=("since", "follow"), stream=True,
        summary="Output of the task's agent; ends with an event `task` that carries the finished Task.",
    ),
    Route(
        name="cancel_task", method="DELETE", path="/v1/tasks/{id}", scope=TASK_WRITE, handler="tasks.cancel",
        response="Task", summary="Cancels a queued task, or ends a running one.",
    ),
)  # fmt: skip
