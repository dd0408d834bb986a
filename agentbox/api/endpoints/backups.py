"""Backups over HTTP."""

import asyncio
import os
import tarfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from starlette.responses import Response

from agentbox.api.auth.authentication import Caller
from agentbox.api.backups.maker import BackupMaker
from agentbox.api.backups.schedule import due_at
from agentbox.api.backups.verification import REPOSITORY, SnapshotVerifier
from agentbox.api.plan_source import PlanSource
from agentbox.backup.files import open_regular
from agentbox.contracts.backups import Backup, Backups, Snapshot
from agentbox.core import clock
from agentbox.core.http.responses import PiecesResponse
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import BackupUnusable, NotFound

MEDIA: Final = "application/x-tar"
_CHUNK: Final = 1 << 20
_END: Final = bytes(tarfile.RECORDSIZE)


class BackupHandlers:
    """The repository is read in threads; only the program `backup` writes it."""

    def __init__(
        self, paths: Paths, plans: PlanSource, maker: BackupMaker, verifier: SnapshotVerifier
    ) -> None:
        self._paths, self._plans = paths, plans
        self._maker, self._verifier = maker, verifier

    async def create(self, caller: Caller, tag: str) -> Backup:
        return await self._maker.create(tag, caller.principal)

    async def list_backups(self) -> Backups:
        """With the one that is being made, or has failed last."""
        heads = await self._verifier.heads()
        items = {head.id: replace(self._backup(head), head=None) for head in heads}
        current = self._maker.current
        if current is not None and current.id in items and self._is_under_way(current):
            items[current.id] = current  # its head is there, but was not verified yet
        elif current is not None and current.id not in items and current.state != "created":
            items[current.id] = current
        schedule, record = self._plans.current.backup.schedule, self._maker.record
        return Backups(
            items=tuple(sorted(items.values(), key=lambda row: (row.time, row.id), reverse=True)),
            next_at=due_at(schedule, record.attempted_at, clock.now()),
            checked_at=record.checked_at,
            faults=record.faults(REPOSITORY),
        )

    async def get(self, id: str) -> Backup:
        current = self._maker.current
        if current is not None and current.id == id and self._is_under_way(current):
            return current
        for head in await self._verifier.heads():
            if head.id == id:
                return self._backup(head)
        if current is not None and current.id == id and current.state == "failed":
            return current
        raise NotFound(f"cannot find backup {id}", resource="backup", id=id)

    async def verify(self, caller: Caller, id: str) -> Backup:
        """`faults` names damaged files."""
        found = await self.get(id)
        if found.head is None:
            raise _not_yet("verify", id)
        faults = await self._verifier.verify(id, caller.principal)
        if faults is None:
            raise NotFound(f"cannot find backup {id}", resource="backup", id=id)
        return self._backup(found.head)

    async def archive(self, id: str) -> Response:
        """A tar of the head and the archive."""
        head = (await self.get(id)).head
        if head is None:
            raise _not_yet("send", id)
        if head.engine == "restic":
            raise BackupUnusable(
                f"cannot send backup {id}: restic has no file for each snapshot",
                hint=f"On the host of the box: agentbox backup export {id} --plain --out FILE",
                reason="unusable",
            )
        files = [self._paths.backups / name for name in (f"{id}.json", head.archive)]
        try:
            opened = await asyncio.to_thread(_open_all, files)
        except OSError as error:
            raise BackupUnusable(
                f"cannot send backup {id}: {error.strerror}",
                hint="Run `agentbox backup verify`.",
                reason="gone",
            ) from error
        headers = (
            ("Content-Type", MEDIA),
            ("Content-Disposition", f'attachment; filename="{id}.tar"'),
            ("Cache-Control", "no-store"),
        )
        return PiecesResponse(_pieces(opened), _length(opened), 200, headers)

    @staticmethod
    def _is_under_way(made: Backup) -> bool:
        return made.state not in ("created", "failed")

    def _backup(self, head: Snapshot) -> Backup:
        return Backup(
            id=head.id,
            time=head.time,
            tag=head.tag,
            state="created",
            size=head.size,
            partial=head.partial,
            verified_at=self._maker.record.verified_at(head.id),
            faults=self._maker.record.faults(head.id),
            head=head,
        )


_Opened = tuple[bytes, int, int]  # header, descriptor, bytes


def _not_yet(verb: str, id: str) -> NotFound:
    return NotFound(
        f"cannot {verb} {id}: it is not a snapshot yet",
        hint="Wait until `agentbox backup list` shows it as created.",
        resource="backup",
        id=id,
    )


def _open_all(paths: Sequence[Path]) -> list[_Opened]:
    opened: list[_Opened] = []
    try:
        for path in paths:
            descriptor = open_regular(path)
            status = os.fstat(descriptor)
            info = tarfile.TarInfo(path.name)
            info.size, info.mtime, info.mode = status.st_size, int(status.st_mtime), 0o600
            opened.append((info.tobuf(tarfile.PAX_FORMAT), descriptor, status.st_size))
    except BaseException:
        for _, descriptor, _ in opened:
            os.close(descriptor)
        raise
    return opened


def _padding(size: int) -> int:
    return -size % tarfile.BLOCKSIZE


def _length(opened: Sequence[_Opened]) -> int:
    return sum(len(header) + size + _padding(size) for header, _, size in opened) + len(_END)


async def _pieces(opened: Sequence[_Opened]) -> AsyncIterator[bytes]:
    try:
        for header, descriptor, size in opened:
            yield header
            sent = 0
            while sent < size:
                chunk = await asyncio.to_thread(
                    os.pread, descriptor, min(_CHUNK, size - sent), sent
                )
                if not chunk:
                    return
                sent += len(chunk)
                yield chunk
            yield bytes(_padding(size))
        yield _END
    finally:
        for _, descriptor, _ in opened:
            os.close(descriptor)
