# Written by tools/client_operations.py from agentbox/contracts.

"""Boxes joined to this one, and this box's own membership."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbox.client.transport import decode, without_none

if TYPE_CHECKING:
    from datetime import datetime

    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.mesh import (
        Deregistered,
        HeartbeatReply,
        MeshSession,
        MeshStatus,
        OutboxItems,
        Registered,
    )
    from agentbox.core.records.page import Page


class AsyncMeshClient:
    """Boxes joined to this one, and this box's own membership. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def register(
        self,
        protocol: int,
        instance_id: str,
        instance_secret: bytes,
        boot_id: str,
        *,
        image_hash: str = "",
        plan_digest: str = "",
        posture_digest: str = "",
        contracts: Mapping[str, Any] | None = None,
        impls: Mapping[str, Any] | None = None,
        did: str = "",
        api_base: str = "",
        sent_at: datetime | None = None,
    ) -> Registered:
        """A box joins this host: a session with its token, and the endpoints of the slots. May be
        repeated."""
        from agentbox.contracts.mesh import Registered

        response = await self._box.request(
            "mesh_register",
            body={
                "protocol": protocol,
                "instance_id": instance_id,
                "instance_secret": instance_secret,
                "boot_id": boot_id,
                "image_hash": image_hash,
                "plan_digest": plan_digest,
                "posture_digest": posture_digest,
                "did": did,
                "api_base": api_base,
                **without_none({"contracts": contracts, "impls": impls, "sent_at": sent_at}),
            },
        )
        return decode(Registered, response)

    async def heartbeat(
        self,
        session_id: str,
        beat: int,
        *,
        health: Mapping[str, Any] | None = None,
        ready: bool | None = None,
        journal: Mapping[str, Any] | None = None,
        outbox: Mapping[str, Any] | None = None,
        sent_at: datetime | None = None,
    ) -> HeartbeatReply:
        """Renews the lease of the session whose token is sent; 410 with the reason once it has
        ended."""
        from agentbox.contracts.mesh import HeartbeatReply

        response = await self._box.request(
            "mesh_heartbeat",
            body={
                "session_id": session_id,
                "beat": beat,
                **without_none(
                    {
                        "health": health,
                        "ready": ready,
                        "journal": journal,
                        "outbox": outbox,
                        "sent_at": sent_at,
                    }
                ),
            },
        )
        return decode(HeartbeatReply, response)

    async def deregister(self, session_id: str) -> Deregistered:
        """Ends the session whose token is sent; may be repeated."""
        from agentbox.contracts.mesh import Deregistered

        response = await self._box.request("mesh_deregister", body={"session_id": session_id})
        return decode(Deregistered, response)

    async def list_sessions(
        self,
        *,
        state: str | None = None,
        instance: str | None = None,
        image: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[MeshSession]:
        """Current and past sessions of this host, in order of id."""
        from agentbox.contracts.mesh import MeshSession
        from agentbox.core.records.page import Page

        response = await self._box.request(
            "mesh_sessions",
            query={
                "state": state,
                "instance": instance,
                "image": image,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return decode(Page[MeshSession], response)

    async def show_session(self, id: str) -> MeshSession:
        """One session."""
        from agentbox.contracts.mesh import MeshSession

        response = await self._box.request("mesh_session", {"id": id})
        return decode(MeshSession, response)

    async def evict(self, id: str) -> None:
        """Ends a session and its token at once; the box may join again."""
        await self._box.request("mesh_evict", {"id": id})

    async def status(self) -> MeshStatus:
        """The role of this box: its mode, and the state of a client or the sessions of a host."""
        from agentbox.contracts.mesh import MeshStatus

        response = await self._box.request("mesh_status")
        return decode(MeshStatus, response)

    async def join(self) -> MeshStatus:
        """Makes a client that was rejected or waits retry its host now."""
        from agentbox.contracts.mesh import MeshStatus

        response = await self._box.request("mesh_join")
        return decode(MeshStatus, response)

    async def outbox(self) -> OutboxItems:
        """Results that wait for the bead store, the oldest first."""
        from agentbox.contracts.mesh import OutboxItems

        response = await self._box.request("mesh_outbox")
        return decode(OutboxItems, response)

    async def drop(self, id: str) -> None:
        """Discards one of them; journaled."""
        await self._box.request("mesh_drop", {"id": id})
