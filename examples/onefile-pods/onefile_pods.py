"""Pods in one SQLite file: an adapter that is not part of agentbox, written for it.

Bodies are held in memory on their way, so this is for objects that are small. Everything else is the contract of the
slot, kept by one transaction a call.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from hashlib import sha256

import apsw
from onefile_options import OneFileOptions

from agentbox.adapters.pods.json_patch import JSON_PATCH, apply_patch, parse_operations
from agentbox.adapters.pods.local.bodies import buffered_body, check_cap, etag_of, resolve_range
from agentbox.adapters.pods.local_fs import CONTAINER_TYPE, check_content_type
from agentbox.adapters.pods.object_preconditions import ObjectPreconditions
from agentbox.adapters.pods.paths import PodPath, parse_path
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.input_checks import check_range, decode_cursor, encode_cursor
from agentbox.contracts.pods import LIMIT, PodMeta, PodObject
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import ContainerNotEmpty, NotFound, QuotaExceeded
from agentbox.core.storage.sqlite import Database, fetch_all, fetch_one

MIGRATIONS = (
    """
    CREATE TABLE members (
        path TEXT PRIMARY KEY, container TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, etag TEXT,
        size INTEGER, modified INTEGER NOT NULL, body BLOB
    ) STRICT;
    CREATE INDEX members_of ON members (container, name);
    CREATE TABLE pulse (id INTEGER PRIMARY KEY CHECK (id = 0), at INTEGER NOT NULL) STRICT;
    """,
)
META = "path, type, etag, size, modified"


class OneFilePods(Adapter):
    """A container's path ends with /, and its row has neither tag nor size."""

    cfg: SlotConfig[OneFileOptions]
    slot = "pods"
    impl = "onefile"
    capabilities = frozenset(
        {"patch.json", "etag.strong", "etag.on_write", "range", "list.paged", "quota"}
    )

    def __init__(self, cfg: SlotConfig[OneFileOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._db = Database(cfg.directory / "pods.db", MIGRATIONS, self.slot, self.impl)
        options = cfg.options
        self._cap = options.max_object
        self._quota = {"quota": options.quota, "quota_objects": options.quota_objects}

    async def open(self, deadline: Deadline) -> None:
        await self._db.open()

    async def close(self) -> None:
        await self._db.close()

    async def health(self) -> Health:
        return self.health_is(*await self._db.pulse(self._now()))

    async def write(
        self, path: str, body: bytes | AsyncIterator[bytes], *, content_type: str = "application/octet-stream",
        if_match: str | None = None, if_none_match: str | None = None,
    ) -> tuple[PodMeta, bool]:  # fmt: skip
        where, wanted, kind = (
            parse_path(path),
            ObjectPreconditions(if_match, if_none_match),
            check_content_type(content_type),
        )
        content, now = await self._whole(body), self._now()

        def job(db: apsw.Connection) -> tuple[PodMeta, bool]:
            current = _find(db, where.text)
            wanted.check(where.text, current.etag if current else None)
            _make_parents(db, where, now)
            return self._put(db, where, content, kind, now), current is None

        return await self._db.write(job)

    async def read(
        self, path: str, *, byte_range: tuple[int, int | None] | None = None
    ) -> PodObject:
        where = parse_path(path)

        def job(db: apsw.Connection) -> tuple[PodMeta, bytes]:
            meta = _must(db, where.text)
            return meta, _body(db, where.text)

        meta, body = await self._db.read(job)
        start, size = resolve_range(byte_range, len(body))
        return PodObject(meta=meta, body=buffered_body(body[start : start + size]))

    async def head(self, path: str) -> PodMeta:
        where = parse_path(path, "either")
        return await self._db.read(lambda db: _must(db, where.text))

    async def patch(
        self, path: str, patch: bytes, *, patch_type: str = JSON_PATCH, if_match: str | None = None
    ) -> PodMeta:
        where, wanted, changes, now = (
            parse_path(path),
            ObjectPreconditions(if_match),
            parse_operations(patch, patch_type),
            self._now(),
        )

        def job(db: apsw.Connection) -> PodMeta:
            current = _must(db, where.text)
            wanted.check(where.text, current.etag)
            body = apply_patch(_body(db, where.text), current.content_type, changes)
            check_cap(len(body), self._cap)
            return self._put(db, where, body, current.content_type, now)

        return await self._db.write(job)

    async def delete(self, path: str, *, if_match: str | None = None) -> None:
        where, wanted = parse_path(path, "either"), ObjectPreconditions(if_match)

        def job(db: apsw.Connection) -> None:
            current = _must(db, where.text)
            if where.is_container and fetch_one(
                db, "SELECT 1 FROM members WHERE container = ?", (where.text,)
            ):
                raise ContainerNotEmpty(
                    f"cannot delete {where.text}: it has members", path=where.text
                )
            if not where.is_container:
                wanted.check(where.text, current.etag)
            db.execute("DELETE FROM members WHERE path = ?", (where.text,))

        await self._db.write(job)

    async def list(
        self, container: str = "", *, limit: int = 100, cursor: str | None = None
    ) -> Page[PodMeta]:
        where, listing = parse_path(container, "container", "/container"), ["list", container]
        check_range(limit, "/limit", LIMIT)
        key = decode_cursor(cursor, listing, 1)
        after = "" if key is None else str(key[0])

        def job(db: apsw.Connection) -> list[PodMeta]:
            if where.text:
                _must(db, where.text)
            sql = (
                f"SELECT {META} FROM members WHERE container = ? AND name > ? ORDER BY name LIMIT ?"
            )
            return [_meta(found) for found in fetch_all(db, sql, (where.text, after, limit + 1))]

        found = await self._db.read(job)
        items = tuple(found[:limit])
        more = len(found) > limit
        return Page(
            items=items,
            next_cursor=encode_cursor(listing, (parse_path(items[-1].path, "either").name,))
            if more
            else None,
        )

    async def _whole(self, body: bytes | AsyncIterator[bytes]) -> bytes:
        content = bytearray()
        async for piece in buffered_body(body) if isinstance(body, bytes) else body:
            check_cap(len(content) + len(piece), self._cap)
            content += piece
        return bytes(content)

    def _put(
        self, db: apsw.Connection, where: PodPath, body: bytes, kind: str, now: int
    ) -> PodMeta:
        """Raises QuotaExceeded, which undoes the transaction: the old body is as it was."""
        tag = etag_of(sha256(body).digest(), kind)
        values = (where.text, _container_of(where), where.name, kind, tag, len(body), now, body)
        db.execute("INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        held = fetch_one(db, "SELECT sum(size), count(*) FROM members WHERE size IS NOT NULL") or (
            0,
            0,
        )
        for (key, cap), observed in zip(self._quota.items(), held, strict=True):
            if observed > cap:
                raise QuotaExceeded(
                    f"cannot write: the pods would hold {observed}, at most {cap} are allowed",
                    limit=key, observed=observed, cap=cap, config_path=f"adapters.pods.{key}",
                )  # fmt: skip
        return _must(db, where.text)

    def _now(self) -> int:
        """Milliseconds."""
        return int(self.deps.clock.now().timestamp() * 1000)


def _find(db: apsw.Connection, path: str) -> PodMeta | None:
    found = fetch_one(db, f"SELECT {META} FROM members WHERE path = ?", (path,))
    return None if found is None else _meta(found)


def _must(db: apsw.Connection, path: str) -> PodMeta:
    found = _find(db, path)
    if found is None:
        raise NotFound(f"no such object or container: {path}", resource="pod", id=path)
    return found


def _body(db: apsw.Connection, path: str) -> bytes:
    found = fetch_one(db, "SELECT body FROM members WHERE path = ?", (path,))
    assert found is not None
    return bytes(found[0])


def _container_of(where: PodPath) -> str:
    return "".join(f"{name}/" for name in where.parts[:-1])


def _make_parents(db: apsw.Connection, where: PodPath, now: int) -> None:
    """Raises ValidationError where an object stands in the way of a container, or a container in that of the object."""
    if _find(db, f"{where.text}/"):
        raise invalid_value("/path", "is a container")
    for depth in range(1, len(where.parts)):
        path = "/".join(where.parts[:depth])
        if _find(db, path):
            raise invalid_value("/path", "lies below an object")
        values = (
            f"{path}/",
            path[: path.rfind("/") + 1],
            where.parts[depth - 1],
            CONTAINER_TYPE,
            now,
        )
        db.execute("INSERT OR IGNORE INTO members VALUES (?, ?, ?, ?, NULL, NULL, ?, NULL)", values)


def _meta(found: tuple[str, str, str | None, int | None, int]) -> PodMeta:
    path, kind, tag, size, modified = found
    return PodMeta(
        path=path, kind="object" if tag else "container", size=size, content_type=kind, etag=tag,
        modified_at=datetime.fromtimestamp(modified / 1000, UTC),
    )  # fmt: skip
