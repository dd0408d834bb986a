"""Fixtures of the events suite for the delivering class: a local journal in a directory, and a sink
behind a real API.
"""

from pathlib import Path
from typing import Any

from agentbox_testkit.clock import ManualClock
from agentbox_testkit.local_store import LocalStore

from agentbox.client.async_client.client import AsyncBoxClient
from support.api_box import TOKEN
from support.served_store import ServedClock, ServedStore

BOX = "one"


class DeliveryStore(ServedStore):
    """The store is the directory of the class under test; `serve` starts its sink, whose token is
    bound to the box `one`.
    """

    def __init__(self, prefix: Path, *, clock: ManualClock, **options: Any) -> None:
        super().__init__("events", "external-http", prefix, served="local-jsonl", clock=clock)
        self._clock = ServedClock(clock)
        self.with_options(endpoint=f"{self.url}/v1/events", **options)

    @property
    def directory(self) -> Path:
        return self.cfg.directory

    def reader(self) -> AsyncBoxClient:
        """Return a client of the sink that may read everything."""
        return AsyncBoxClient(self.url, token=TOKEN)

    async def serve(self) -> None:
        """Starts the sink, also again."""
        await super().serve()
        if self.cfg.secrets["token"] == TOKEN:
            token_request = {"name": BOX, "scopes": ["events:write"], "origin_box": BOX}
            async with self.reader() as client:
                self.with_secrets(
                    token=(await client.call("create_token", body=token_request))["value"]
                )

    async def stop_serving(self) -> None:
        """Ends the sink; nothing listens any more."""
        await super().kill_backend()

    async def kill_backend(self) -> None:
        """Removes the journal under the open instance; the sink keeps running."""
        await LocalStore.kill_backend(self)

    async def reopen(self) -> Any:
        """Closes all instances and opens the store again; the sink keeps running."""
        return await LocalStore.reopen(self)

    def worker(self, work: str, *arguments: str) -> Any:
        """Starts another process on the directory."""
        return LocalStore.worker(self, work, *arguments)

    async def end(self) -> None:
        """Closes all instances and the sink."""
        await self.close_all()
        await self.stop_serving()
