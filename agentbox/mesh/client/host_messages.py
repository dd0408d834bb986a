"""What a mesh client sends to its host: its registration, heartbeats, and that it ends. Each
response also measures the clock difference.
"""

import asyncio
from datetime import datetime

import structlog

from agentbox.contracts.mesh import Heartbeat, Registered, Registration
from agentbox.core import clock
from agentbox.core.linux.boottime import boottime
from agentbox.mesh.client.clock_skew import ClockSkew
from agentbox.mesh.client.host_connection import (
    HostConnection,
    HostRefused,
    HostSessionEnded,
    HostUnreachable,
)
from agentbox.mesh.client.instance import InstanceIdentity
from agentbox.mesh.client.session import BoxFacts, ClientSession
from agentbox.mesh.metrics import ClientMetrics

DEREGISTER_SECONDS = 5.0
_log = structlog.get_logger()


class HostMessageSender:
    """Calls raise HostUnreachable, HostRefused, SessionOver. `last_heartbeat`: when the
    host answered one."""

    def __init__(
        self,
        instance: InstanceIdentity,
        connection: HostConnection,
        facts: BoxFacts,
        metrics: ClientMetrics,
        skew: ClockSkew,
    ) -> None:
        self._instance, self._connection, self._facts = instance, connection, facts
        self._metrics, self.skew = metrics, skew
        self.last_heartbeat: datetime | None = None

    @property
    def host_url(self) -> str:
        return self._connection.url

    async def close(self) -> None:
        await self._connection.close()

    async def register(self) -> Registered:
        """Opens or renews the session."""
        registration = Registration(
            protocol=1,
            instance_id=self._instance.id,
            instance_secret=self._instance.secret,
            boot_id=self._facts.boot_id,
            sent_at=clock.now(),
            **self._facts.registration(),
        )
        with self.skew.measure() as record_time:
            registered = await self._connection.register(registration)
            record_time(registered.host_time)
        return registered

    async def heartbeat(self, session: ClientSession) -> str:
        """Returns the revision of the host's offers."""
        heartbeat = Heartbeat(
            session_id=session.registered.session_id,
            beat=session.heartbeats,
            sent_at=clock.now(),
            **await self._facts.heartbeat(),
        )
        with self._metrics.heartbeat_seconds.time(), self.skew.measure() as record_time:
            reply = await self._connection.heartbeat(heartbeat, session.registered.token)
            record_time(reply.host_time)
        session.last_ok, session.misses, self.last_heartbeat = boottime(), 0, clock.now()
        self._metrics.heartbeats.labels("ok").inc()
        return reply.endpoints_rev

    async def deregister(self, registered: Registered) -> bool:
        """Whether the host confirmed it, within DEREGISTER_SECONDS. Raises nothing."""
        try:
            async with asyncio.timeout(DEREGISTER_SECONDS):
                await self._connection.deregister(registered.session_id, registered.token)
        except (HostUnreachable, HostRefused, HostSessionEnded, TimeoutError) as error:
            _log.warning("mesh.not_deregistered", reason=str(error))
            return False
        return True
