"""Opens one instance of a slot within its timeout."""

import asyncio

import structlog

from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, SlotConfig
from agentbox.adapters.runtime.lifecycle.inflight import InFlight
from agentbox.adapters.runtime.lifecycle.timing import LifecycleTiming
from agentbox.adapters.runtime.registry import resolve
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import AdapterError
from agentbox.manifest.declarations.options import Options

log = structlog.get_logger()


class OpenFailed(Exception):
    """An instance could not be opened. The text is the reason, without credentials."""


async def open_instance(
    cfg: SlotConfig[Options], deps: Deps, timing: LifecycleTiming, inflight: InFlight
) -> tuple[Adapter, Health]:
    """Open an instance and check its health. A failed instance is closed before OpenFailed is
    raised."""
    instance = resolve(cfg.slot, cfg.use)(cfg, deps)
    outcome = "error"
    try:
        async with asyncio.timeout(timing.open):
            await deps.before_open(cfg.slot)
            await instance.open(Deadline.after(timing.open))
            health = await instance.health()
        if health.state == "down":
            raise OpenFailed(health.detail)
        outcome = "ok"
        return instance, health
    except OpenFailed:
        raise
    except TimeoutError as error:
        outcome = "timeout"
        raise OpenFailed(f"it did not open within {timing.open:g} s") from error
    except AdapterError as error:
        raise OpenFailed(error.message) from error
    except OSError as error:
        raise OpenFailed(f"cannot open it: {error.strerror or type(error).__name__}") from error
    except Exception as error:
        log.exception("slot.open.bug", slot=cfg.slot, impl=cfg.use)
        raise OpenFailed("internal error; see the traceback in the log") from error
    finally:
        deps.metrics.opened.labels(cfg.slot, cfg.use, outcome).inc()
        if outcome != "ok":
            await inflight.close(instance, timing.failed_close)
