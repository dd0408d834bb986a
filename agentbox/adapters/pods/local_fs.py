"""Pods in a folder of the box: bodies are plain files, `index.db` holds the rest."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from agentbox.adapters.pods.conditions import Conditions
from agentbox.adapters.pods.json_patch import JSON_PATCH, apply, operations
from agentbox.adapters.pods.listing import members
from agentbox.adapters.pods.local.bodies import AT_ONCE, Outgoing, at_once, read_all, span
from agentbox.adapters.pods.local.index import DEFAULT_TYPE, MIGRATIONS, Quota
from agentbox.adapters.pods.local.store import Found, Store
from agentbox.adapters.pods.local.tree import typed
from agentbox.adapters.pods.paths import PodPath, parse
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.checks import check_range, check_text, cursor_of, key_of
from agentbox.contracts.pods import LIMIT, PodMeta, PodObject
from agentbox.core.background.threads import in_thread
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import Database, closed

CONTAINER_TYPE = "text/turtle"  # what a container is served as (Linked Data Platform 5.2.1)
LONGEST_TYPE = 255
CLOSE_SECONDS = 4.0
T = TypeVar("T")


class LocalFsPods(Adapter):
    """`objects/` and `index.db`. Every call that was begun ends before `close` returns."""

    slot = "pods"
    impl = "local-fs"
    capabilities = frozenset({"patch.json", "etag.strong", "etag.on_write", "range", "list.paged", "quota"})

    def __init__(self, cfg: SlotConfig, deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._db = Database(cfg.directory / "index.db", MIGRATIONS, self.slot, self.impl, record=cfg.record)
        self._damaged = DamagedRows("index.db")
        self._quota = Quota(int(cfg.option("quota", 10 << 30)), int(cfg.option("quota_objects", 1_000_000)))
        self._cap = int(cfg.option("max_object", 64 << 20))
        self._store: Store | None = None
        self._running: set[asyncio.Future[Any]] = set()

    async def open(self, deadline: Deadline) -> None:
        record = self.cfg.record
        held = record.read("id", "mark")

        def lost() -> None:
            if held is not None:
                raise record.lost("the pods", "every object is gone from the folder, and the index knows of some")

        await self._db.open()
        try:
            self._store = await self._run(
                lambda: Store(self.cfg.directory, self._db, self._quota, self._cap, lost, self._damaged)
            )
        except BaseException:
            await self._db.close()
            raise

    async def close(self) -> None:
        store, self._store = self._store, None
        if self._running:
            await asyncio.wait(self._running, timeout=CLOSE_SECONDS)
        await self._db.close()
        if store is not None:
            store.close()

    async def health(self) -> Health:
        """Writes a time and reads it back; the folder must still be the one that was opened."""
        try:
            store = self._open()
            there = await self._run(store.tree.still_there)
        except AdapterError as error:
            return self.health_is("down", error.message)
        state, fault = await self._db.pulse(int(self.deps.clock.now().timestamp() * 1000))
        if state != "down" and not there:
            state, fault = "down", "the folder of the objects is gone"
        return self.health_is(*self._damaged.judged(state, fault))

    async def write(
        self, path: str, body: bytes | AsyncIterator[bytes], *,
        content_type: str = DEFAULT_TYPE, if_match: str | None = None, if_none_match: str | None = None,
    ) -> tuple[PodMeta, bool]:  # fmt: skip
        store, where, wanted = self._open(), parse(path), Conditions(if_match, if_none_match)
        kind = check_type(content_type)
        if isinstance(body, bytes):
            found = await self._run(lambda: store.write(where, body, kind, wanted))
        else:
            found = await self._receive(store, where, body, kind, wanted)
        return _meta(where, found), found.created

    async def read(self, path: str, *, byte_range: tuple[int, int | None] | None = None) -> PodObject:
        """`byte_range` is first and last byte, as in RFC 9110 14; the last may be None, or lie beyond the end."""
        store, where = self._open(), parse(path)
        return await self._run(lambda: _opened(store, where, byte_range))

    async def head(self, path: str) -> PodMeta:
        store, where = self._open(), parse(path, "either")
        if where.is_container:
            return _container(where.text, await self._run(lambda: store.container(where)))
        return _meta(where, await self._run(lambda: store.head(where)))

    async def patch(
        self, path: str, patch: bytes, *, patch_type: str = JSON_PATCH, if_match: str | None = None
    ) -> PodMeta:
        store, where, wanted = self._open(), parse(path), operations(patch, patch_type)
        found = await self._run(
            lambda: store.patch(where, lambda body, kind: apply(body, kind, wanted), Conditions(if_match))
        )
        return _meta(where, found)

    async def delete(self, path: str, *, if_match: str | None = None) -> None:
        store, where = self._open(), parse(path, "either")
        await self._run(lambda: store.delete(where, Conditions(if_match)))

    async def list(self, container: str = "", *, limit: int = 100, cursor: str | None = None) -> Page[PodMeta]:
        store, where = self._open(), parse(container, "container", "/container")
        check_range(limit, "/limit", LIMIT)
        listing = ["list", container]
        key = key_of(cursor, listing, 1)
        after = None if key is None else str(key[0])
        found = await self._run(lambda: members(store, where, after, limit + 1))
        metas = tuple(
            _container(path.text, entry) if isinstance(entry, os.stat_result) else _meta(path, entry)
            for path, entry in found[:limit]
        )
        more = len(found) > limit
        return Page(items=metas, next_cursor=cursor_of(listing, (found[limit - 1][0].name,)) if more else None)

    async def _receive(
        self, store: Store, where: PodPath, body: AsyncIterator[bytes], kind: str, wanted: Conditions
    ) -> Found:
        """Takes the pieces as they come; nothing is left of them if the caller goes away."""
        stack = ExitStack()
        try:
            one = await self._run(lambda: stack.enter_context(store.receiving(where, kind)))
            async for piece in body:
                await self._run(partial(one.fill, piece))
            found = await self._run(lambda: one.place(wanted))
        except BaseException as error:
            failure = (type(error), error, error.__traceback__)
            await self._run(lambda: stack.__exit__(*failure))
            raise
        await self._run(stack.close)
        return found

    async def _run(self, work: Callable[[], T]) -> T:
        """In a thread that is waited for, whoever is cancelled: what it has open stays its own until it ends."""
        running = asyncio.ensure_future(in_thread(work))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})
            if not running.cancelled():
                running.exception()
            raise

    def _open(self) -> Store:
        if self._store is None:
            raise closed(self.slot, self.impl)
        return self._store


def _opened(store: Store, where: PodPath, byte_range: tuple[int, int | None] | None) -> PodObject:
    descriptor, found = store.open_object(where)
    try:
        start, size = span(byte_range, found.row.size)
        if size <= AT_ONCE:
            with typed(f"read {where.text}"):
                body = read_all(descriptor, start, size)
            os.close(descriptor)
            return PodObject(meta=_meta(where, found), body=at_once(body))
    except BaseException:
        os.close(descriptor)
        raise
    return PodObject(meta=_meta(where, found), body=Outgoing(descriptor, start, size))


def check_type(content_type: str) -> str:
    """Stored as it is, so it must be something that a header can carry."""
    check_text(content_type, "/content_type", longest=LONGEST_TYPE)
    if "/" not in content_type or not content_type.isascii() or not content_type.isprintable():
        raise refuse("/content_type", "is no media type")
    return content_type


def _meta(path: PodPath, found: Found) -> PodMeta:
    return PodMeta(
        path=path.text, kind="object", size=found.row.size, content_type=found.row.content_type, etag=found.row.etag,
        modified_at=_time(found.stat),
    )  # fmt: skip


def _container(path: str, found: os.stat_result) -> PodMeta:
    return PodMeta(
        path=path, kind="container", size=None, content_type=CONTAINER_TYPE, etag=None, modified_at=_time(found)
    )


def _time(found: os.stat_result) -> datetime:
    return datetime.fromtimestamp(found.st_mtime_ns // 1_000_000 / 1000, UTC)
