"""The base class of the `off` implementations: refuses each method of the slot's Protocol with a
typed error."""

from collections.abc import AsyncIterator
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Literal

from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, SlotConfig
from agentbox.contracts.routes.resource import protocol_methods
from agentbox.core import clock
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import AdapterDisabled, AdapterError, SlotUnavailable
from agentbox.manifest.declarations.options import Options


class Off(Adapter):
    """Refuses all calls. As the configured class it raises AdapterDisabled; with `reason="down"` it
    is the fallback of a slot that is down and raises SlotUnavailable with the time of the next
    attempt."""

    impl = "off"
    contract: ClassVar[type]

    def __init__(
        self,
        cfg: SlotConfig[Options],
        deps: Deps,
        *,
        reason: Literal["off", "down"] = "off",
        since: datetime | None = None,
        retry_at: float | None = None,
    ) -> None:
        super().__init__(cfg, deps)
        self.reason = reason
        self.since = since or deps.clock.now()
        self.retry_at = retry_at  # monotonic time

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, declared in protocol_methods(cls.contract).items():
            setattr(
                cls, name, _refusing_call if iscoroutinefunction(declared) else _refusing_stream
            )

    async def open(self, deadline: Deadline) -> None:
        """Succeeds."""

    async def close(self) -> None:
        """Succeeds."""

    async def health(self) -> Health:
        return self.health_is("ok", "off")

    def refusal(self) -> AdapterError:
        """Return the error that every method raises."""
        if self.reason == "off":
            return AdapterDisabled(
                f"cannot use {self.slot}: the slot is off",
                hint=f"set adapters.{self.slot}.use to an implementation and start the box again",
                slot=self.slot,
            )
        remaining = (
            None if self.retry_at is None else max(0.0, self.retry_at - self.deps.clock.monotonic())
        )
        return SlotUnavailable(
            f"cannot use {self.slot}: {self.cfg.use} is down since {clock.to_wire(self.since)}",
            hint="wait: it is retried in the background",
            retry_after=remaining,
            slot=self.slot,
            impl=self.cfg.use,
            since=clock.to_wire(self.since),
        )


async def _refusing_call(self: Off, *_args: Any, **_kwargs: Any) -> Any:
    raise self.refusal()


def _refusing_stream(self: Off, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
    return _RefusingIterator(self.refusal())


class _RefusingIterator(AsyncIterator[Any]):
    """An iterator that raises the error at its first item."""

    def __init__(self, error: AdapterError) -> None:
        self._error = error

    async def __anext__(self) -> Any:
        raise self._error
