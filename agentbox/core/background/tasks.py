"""Work in the background: what ends by a bug says so in the log."""

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

_log = structlog.get_logger()


def log_failures(task_name: str) -> Callable[["asyncio.Future[Any]"], None]:
    """A callback for a job that is over. Cancelled, or ended as it should: nothing is said."""

    def log_failure(task: "asyncio.Future[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error(f"{task_name} ended", exc_info=error)

    return log_failure
