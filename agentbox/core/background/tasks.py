"""Background tasks: failures are logged."""

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

_log = structlog.get_logger()


def log_failures(task_name: str) -> Callable[["asyncio.Future[Any]"], None]:
    """Returns a done callback that logs the exception of a task. Nothing is logged if it succeeded
    or was cancelled.
    """

    def log_failure(task: "asyncio.Future[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error(f"{task_name} ended", exc_info=error)

    return log_failure
