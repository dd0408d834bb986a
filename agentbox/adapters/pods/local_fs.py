"""Pods in a directory of the box: bodies are plain files, `index.db` has the metadata."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from agentbox.adapters.pods.json_patch import JSON_PATCH, apply_patch, parse_operations
from agentbox.adapters.pods.listing import list_members
from agentbox.adapters.pods.local.bodies import (
    MAX_BUFFERED,
    Download,
    buffered_body,
    read_all,
    resolve_range,
)
from agentbox.adapters.pods.local.cut import PodsCut
from agentbox.adapters.pods.local.index import DEFAULT_TYPE, MIGRATIONS, Quota
from agentbox.adapters.pods.local.store import ObjectStore, StoredObject
from agentbox.adapters.pods.local.tree import translate_errors
from agentbox.adapters.pods.object_preconditions import ObjectPreconditions
from agentbox.adapters.pods.paths import PodPath, parse_path
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.input_checks import (
    check_range,
    check_text,
    decode_cursor,
    encode_cursor,
)
from agentbox.contracts.pods import LIMIT, PodMeta, PodObject
from agentbox.core.background.threads import run_in_thread
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import Database, closed_error
from agentbox.manifest.slot_options import LocalPodsOptions

CONTAINER_TYPE = "text/turtle"  # the type of containers (Linked Data Platform 5.2.1)
MAX_TYPE_LENGTH = 255
CLOSE_SECONDS = 4.0
T = TypeVar("T")


class LocalFsPods(Adapter):
    """`objects/` and `index.db`. `close` waits for all calls in progress."""

    cfg: SlotConfig[LocalPodsOptions]
    slot = "pods"
    impl = "local-fs"
    capabilities = frozenset(
        {"patch.json", "etag.strong", "etag.on_write", "range", "list.paged", "quota"}
    )

    def __init__(self, cfg: SlotConfig[LocalPodsOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._db = Database(
            cfg.directory / "index.db", MIGRATIONS, self.slot, self.impl, record=cfg.record
        )
        self._damaged = DamagedRows("index.db")
        self._quota = Quota(cfg.options.quota, cfg.options.quota_objects)
        self._cap = cfg.options.max_object
        self._store: ObjectStore | None = None
        self._running: set[asyncio.Future[Any]] = set()

    async def open(self, deadline: Deadline) -> None:
        record = self.cfg.record
        previous = record.read("id", "mark")

        def check_loss() -> None:
            if previous is not None:
                raise record.loss_error(
                    "the pods", "the directory has no objects, but the index does"
                )

        await self._db.open()
        try:
            self._store = await self._run(
                lambda: ObjectStore(
                    self.cfg.directory, self._db, self._quota, self._cap, check_loss, self._damaged
                )
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
        """Write a time and read it back; the directory must still be the opened one."""
        try:
            store = self._require_store()
            is_present = await self._run(store.tree.is_present)
        except AdapterError as error:
            return self.health_is("down", error.message)
        state, fault = await self._db.pulse(int(self.deps.clock.now().timestamp() * 1000))
        if state != "down" and not is_present:
            state, fault = "down", "the directory of the objects was removed"
        return self.health_is(*self._damaged.adjust_state(state, fault))

    def cut(self, *, dump: bool) -> PodsCut:
        return PodsCut(self.cfg.directory / "index.db", self._require_store(), self.impl)

    async def write(
        self,
        path: str,
        body: bytes | AsyncIterator[bytes],
        *,
        content_type: str = DEFAULT_TYPE,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> tuple[PodMeta, bool]:
        store, pod_path, conditions = (
            self._require_store(),
            parse_path(path),
            ObjectPreconditions(if_match, if_none_match),
        )
        kind = check_content_type(content_type)
        if isinstance(body, bytes):
            stored = await self._run(lambda: store.write(pod_path, body, kind, conditions))
        else:
            stored = await self._receive(store, pod_path, body, kind, conditions)
        return _meta(pod_path, stored), stored.created

    async def read(
        self, path: str, *, byte_range: tuple[int, int | None] | None = None
    ) -> PodObject:
        """`byte_range` is first and last byte, as in RFC 9110 14; the last may be None, or beyond
        the end."""
        store, pod_path = self._require_store(), parse_path(path)
        return await self._run(lambda: _open_object(store, pod_path, byte_range))

    async def head(self, path: str) -> PodMeta:
        store, pod_path = self._require_store(), parse_path(path, "either")
        if pod_path.is_container:
            return _container_meta(
                pod_path.text, await self._run(lambda: store.container_stat(pod_path))
            )
        return _meta(pod_path, await self._run(lambda: store.head(pod_path)))

    async def patch(
        self, path: str, patch: bytes, *, patch_type: str = JSON_PATCH, if_match: str | None = None
    ) -> PodMeta:
        store, pod_path, patch_operations = (
            self._require_store(),
            parse_path(path),
            parse_operations(patch, patch_type),
        )
        stored = await self._run(
            lambda: store.patch(
                pod_path,
                lambda body, kind: apply_patch(body, kind, patch_operations),
                ObjectPreconditions(if_match),
            )
        )
        return _meta(pod_path, stored)

    async def delete(self, path: str, *, if_match: str | None = None) -> None:
        store, pod_path = self._require_store(), parse_path(path, "either")
        await self._run(lambda: store.delete(pod_path, ObjectPreconditions(if_match)))

    async def list(
        self, container: str = "", *, limit: int = 100, cursor: str | None = None
    ) -> Page[PodMeta]:
        store, pod_path = self._require_store(), parse_path(container, "container", "/container")
        check_range(limit, "/limit", LIMIT)
        listing = ["list", container]
        key = decode_cursor(cursor, listing, 1)
        after = None if key is None else str(key[0])
        entries = await self._run(lambda: list_members(store, pod_path, after, limit + 1))
        metas = tuple(
            _container_meta(path.text, entry)
            if isinstance(entry, os.stat_result)
            else _meta(path, entry)
            for path, entry in entries[:limit]
        )
        has_more = len(entries) > limit
        return Page(
            items=metas,
            next_cursor=encode_cursor(listing, (entries[limit - 1][0].name,)) if has_more else None,
        )

    async def _receive(
        self,
        store: ObjectStore,
        pod_path: PodPath,
        body: AsyncIterator[bytes],
        kind: str,
        conditions: ObjectPreconditions,
    ) -> StoredObject:
        """Write a streamed body. Nothing remains of it if the caller is cancelled."""
        stack = ExitStack()
        try:
            pending = await self._run(lambda: stack.enter_context(store.open_write(pod_path, kind)))
            async for chunk in body:
                await self._run(partial(pending.write, chunk))
            stored = await self._run(lambda: pending.commit(conditions))
        except BaseException as error:
            failure = (type(error), error, error.__traceback__)
            await self._run(lambda: stack.__exit__(*failure))
            raise
        await self._run(stack.close)
        return stored

    async def _run(self, work: Callable[[], T]) -> T:
        """Run in a thread and wait for it even if the caller is cancelled, so that its descriptors
        stay valid."""
        task = asyncio.ensure_future(run_in_thread(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()
            raise

    def _require_store(self) -> ObjectStore:
        if self._store is None:
            raise closed_error(self.slot, self.impl)
        return self._store


def _open_object(
    store: ObjectStore, pod_path: PodPath, byte_range: tuple[int, int | None] | None
) -> PodObject:
    descriptor, stored = store.open_object(pod_path)
    try:
        start, size = resolve_range(byte_range, stored.row.size)
        if size <= MAX_BUFFERED:
            with translate_errors(f"read {pod_path.text}"):
                body = read_all(descriptor, start, size)
            os.close(descriptor)
            return PodObject(meta=_meta(pod_path, stored), body=buffered_body(body))
    except BaseException:
        os.close(descriptor)
        raise
    return PodObject(meta=_meta(pod_path, stored), body=Download(descriptor, start, size))


def check_content_type(content_type: str) -> str:
    """The type is stored unchanged, so it must be a valid header value."""
    check_text(content_type, "/content_type", max_length=MAX_TYPE_LENGTH)
    if "/" not in content_type or not content_type.isascii() or not content_type.isprintable():
        raise invalid_value("/content_type", "is not a media type")
    return content_type


def _meta(path: PodPath, stored: StoredObject) -> PodMeta:
    return PodMeta(
        path=path.text,
        kind="object",
        size=stored.row.size,
        content_type=stored.row.content_type,
        etag=stored.row.etag,
        modified_at=_modified_at(stored.stat),
    )


def _container_meta(path: str, status: os.stat_result) -> PodMeta:
    return PodMeta(
        path=path,
        kind="container",
        size=None,
        content_type=CONTAINER_TYPE,
        etag=None,
        modified_at=_modified_at(status),
    )


def _modified_at(status: os.stat_result) -> datetime:
    return datetime.fromtimestamp(status.st_mtime_ns // 1_000_000 / 1000, UTC)
