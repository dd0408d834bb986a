"""The fixtures of the pods suite on a Solid server: each store is a container of its own, reached over a relay."""

import uuid
from pathlib import Path
from typing import Any

from agentbox_testkit.fault_proxy import FaultProxy
from agentbox_testkit.local_store import LocalStore
from solid_server import SolidServer

from agentbox.adapters.runtime.adapter import Clock

CAP = (
    256 << 10
)  # of one object: that of the suite, which is not imported before its asserts are rewritten


class SolidStore(LocalStore):
    """One root container. `line` is the relay, which tests break."""

    def __init__(
        self, server: SolidServer, prefix: Path, *, clock: Clock | None = None, **options: Any
    ) -> None:
        self.name = f"t-{uuid.uuid4().hex}"
        endpoint = f"{server.url}/{self.name}"
        given = {"endpoint": endpoint, "auth": "none", "max_object": CAP, **options}
        super().__init__("pods", "external-solid", prefix, clock=clock, options=given)
        self.server = server
        self.line = FaultProxy(server.port, server.relay_port)

    @property
    def directory(self) -> Path:
        """The files of the container."""
        return self.server.files / self.name

    async def kill_backend(self) -> None:
        """Nobody listens at its address any more: a server that is killed takes seconds to come back."""
        await self.line.__aexit__(None, None, None)
