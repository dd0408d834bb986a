"""The sweep of expired memory entries waits for the end of a hold."""

import asyncio

import pytest
from agentbox_testkit.wait import wait_until

from agentbox.adapters.memory import swept


class Sweeps(swept.SweptMemory):
    """The base class with a sweep that is counted."""

    removed = 0

    async def open(self, deadline):
        """Nothing to open."""

    async def health(self):
        """Not asked here."""

    async def _remove_expired(self):
        self.removed += 1


async def test_a_held_box_removes_nothing(box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds begin once it is released; the number of its entries is compared until then."""
    monkeypatch.setattr(swept, "SWEEP_SECONDS", 0.0)
    released, waiting = asyncio.Event(), asyncio.Event()

    async def may_send() -> None:
        waiting.set()
        await released.wait()

    deps = swept.Deps(metrics=box.metrics, may_send=may_send)
    memory = Sweeps(None, deps)  # type: ignore[arg-type]
    sweeper = asyncio.ensure_future(memory._sweep())
    try:
        await waiting.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert memory.removed == 0
        released.set()
        await wait_until(lambda: memory.removed > 1, "entries are removed")
    finally:
        sweeper.cancel()
        await asyncio.wait({sweeper})
