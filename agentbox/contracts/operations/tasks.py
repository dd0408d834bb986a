"""Operations of tasks, which are beads that run an agent."""

from agentbox.contracts.routes.operation import read, stream, write
from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.tasks import TaskBody, TaskEndpoints

_WRITE = ("agents:write", "beads:write")

TASKS = Resource(
    "tasks",
    TaskEndpoints,
    scope="agents",
    operations=(
        write(
            "submit",
            "POST /v1/tasks",
            "Queues one run of a program. A bead is its receipt.",
            route="submit_task",
            scope=_WRITE,
            body=TaskBody,
            statuses=(202,),
            headers=("Idempotency-Key",),
        ),
        read("list_tasks", "GET /v1/tasks", "Tasks, in order of id."),
        read("get", "GET /v1/tasks/{id}", "One task.", route="get_task"),
        stream(
            "logs",
            "GET /v1/tasks/{id}/logs",
            "Output of the task's agent; ends with an event `task` that carries the finished Task.",
            route="task_logs",
            last="Task",
        ),
        write(
            "cancel",
            "DELETE /v1/tasks/{id}",
            "Cancels a queued task, or ends a running one.",
            route="cancel_task",
            scope=_WRITE,
            deadline_s=90,
        ),
    ),
)
RESOURCES = (TASKS,)
