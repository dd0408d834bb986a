"""Work in the background: what ends by a bug says so in the log."""

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

_log = structlog.get_logger()


def tells_bug(what: str) -> Callable[["asyncio.Future[Any]"], None]:
    """A callback for a job that is over. Cancelled, or ended as it should: nothing is said."""

    def told(job: "asyncio.Future[Any]") -> None:
        if not job.cancelled() and (error := job.exception()) is not None:
            _log.error(f"{what} ended", exc_info=error)

    return told
