"""Structured logs: one JSON object per line on stdout, the only output of agentbox programs in a
box.
"""

import logging
import sys

import structlog

LEVELS = {
    "trace": 5,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}

# their info lines are dropped: calls of agents are counted in metrics
_NOISY_LOGGERS = ("httpx", "httpcore")


def configure(program: str, level: str = "info") -> None:
    """Configures structlog for a program of the box. Records of the standard `logging` join the
    same stream. Raises KeyError unless `level` is a value of `observability.log_level`.
    """
    threshold = LEVELS[level]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        _add_program(program),
        # No local variables of frames: they may contain a token or a payload.
        structlog.processors.ExceptionRenderer(
            structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        ),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(sort_keys=True)],
        # structlog has no level below debug: `trace` means all its messages, and those of libraries
        # below debug.
        wrapper_class=structlog.make_filtering_bound_logger(
            threshold if threshold >= logging.DEBUG else logging.NOTSET
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    bridge = logging.StreamHandler(sys.stdout)
    bridge.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(sort_keys=True),
            ],
        )
    )
    logging.basicConfig(handlers=[bridge], level=threshold, force=True)
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(
            logging.WARNING if threshold == logging.INFO else logging.NOTSET
        )


def _add_program(program: str) -> structlog.typing.Processor:
    def add(
        _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        event.setdefault("program", program)
        return event

    return add
