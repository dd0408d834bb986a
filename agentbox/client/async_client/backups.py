# Written by tools/client_operations.py from agentbox/contracts.

"""Snapshots of the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.backups import Backup, Backups


class AsyncBackupsClient:
    """Snapshots of the box. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def create(self, tag: str = "") -> Backup:
        """Makes a backup. It goes on after the response: follow its `state`, or the events
        `backup.created` and `backup.failed`. 409 while another one is made, 507 without enough
        room."""
        from agentbox.contracts.backups import Backup

        response = await self._box.request("create_backup", body={"tag": tag})
        return decode(Backup, response)

    async def list(self) -> Backups:
        """Backups, newest first."""
        from agentbox.contracts.backups import Backups

        response = await self._box.request("list_backups")
        return decode(Backups, response)

    async def get(self, id: str) -> Backup:
        """One backup, with its head."""
        from agentbox.contracts.backups import Backup

        response = await self._box.request("get_backup", {"id": id})
        return decode(Backup, response)

    async def verify(self, id: str) -> Backup:
        """Compares the archive with the hashes of its head."""
        from agentbox.contracts.backups import Backup

        response = await self._box.request("verify_backup", {"id": id}, wait_s=3600)
        return decode(Backup, response)

    async def archive(self, id: str) -> bytes:
        """A tar of the head and the archive, encrypted as it is stored."""
        response = await self._box.request("backup_archive", {"id": id}, headers={"Accept": "*/*"})
        return response.content
