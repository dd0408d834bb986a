"""Pods on a Solid server: Community Solid Server, another box, or any that keeps the Solid protocol (P13 to P15)."""

import asyncio
import builtins
from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakValueDictionary

import httpx

from agentbox.adapters.pods.conditions import Conditions
from agentbox.adapters.pods.json_patch import JSON_PATCH, apply, essence, operations
from agentbox.adapters.pods.local.bodies import at_once, check_cap, cut, span
from agentbox.adapters.pods.local_fs import check_type
from agentbox.adapters.pods.paths import listed, parse
from agentbox.adapters.pods.solid.answers import CONTAINER_TYPE, begin_of, is_strong, meta_of
from agentbox.adapters.pods.solid.bodies import Sent, outgoing
from agentbox.adapters.pods.solid.facts import N3_PATCH, Facts, learn
from agentbox.adapters.pods.solid.line import Line
from agentbox.adapters.pods.solid.listing import page
from agentbox.adapters.pods.solid.members import Member
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.checks import check_range, cursor_of, key_of
from agentbox.contracts.pods import LIMIT, PodMeta, PodObject
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import (
    AdapterError,
    BackendError,
    NotFound,
    PermissionDenied,
    PreconditionFailed,
    UnsupportedPatch,
    ValidationError,
)

DEFAULT_TYPE = "application/octet-stream"
ROUNDS = 5  # of an emulated patch that meets other writers (P15)
HEALTH_SECONDS = 1.9
Span = tuple[int, int | None] | None  # first and last byte
_ANY = {"Accept": "*/*"}
_PATCHES = {"patch.json": JSON_PATCH, "patch.n3": N3_PATCH}


class ExternalSolidPods(Adapter):
    """`endpoint` is the root container. `modified_at` is to the second, as HTTP has it; a listing says no tags."""

    slot = "pods"
    impl = "external-solid"

    def __init__(self, cfg: SlotConfig, deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._line = Line(cfg)
        self._cap = int(cfg.option("max_object", 64 << 20))
        self._facts = Facts()
        self._patching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def open(self, deadline: Deadline) -> None:
        self._line.open()
        try:
            self._facts = await learn(self._line)
        except BaseException:
            await self._line.close()
            raise
        self.capabilities = self._facts.capabilities

    async def close(self) -> None:
        await self._line.close()

    async def health(self) -> Health:
        """Asks the server for an object of ours, or for the root container."""
        try:
            await self._line.ask("HEAD", self._facts.pulse, method="health", headers=_ANY, seconds=HEALTH_SECONDS)
        except NotFound:
            pass  # somebody emptied it, which a server that answers may have
        except AdapterError as error:
            return self.health_is("down", error.message)
        return self.health_is("ok", "")

    async def write(
        self, path: str, body: bytes | AsyncIterator[bytes], *,
        content_type: str = DEFAULT_TYPE, if_match: str | None = None, if_none_match: str | None = None,
    ) -> tuple[PodMeta, bool]:  # fmt: skip
        """Where the server gives no tag with its answer, what comes back is what is there just after: a later writer's, if
        there was one (P13)."""
        self._object(path)
        kind = check_type(content_type)
        async with outgoing(body, self._cap, at_once=self._facts.strict) as content:
            wanted = await self._conditions(path, if_match, if_none_match)
            return await self._put(path, content, kind, wanted)

    async def _put(self, path: str, content: Sent, kind: str, wanted: dict[str, str]) -> tuple[PodMeta, bool]:
        headers = {"Content-Type": kind, **content.headers, **wanted}
        try:
            done = await self._line.ask("PUT", path, method="write", headers=headers, content=content.body)
        except PreconditionFailed as error:
            raise await self._with_tag(path, error) from None
        except (PermissionDenied, BackendError):
            if (above := await self._object_above(path, "write")) is not None:
                raise refuse("/path", f"lies below {above}, which is an object") from None
            raise
        return await self._written(path, done, kind, content.size), done.status_code == httpx.codes.CREATED

    async def read(self, path: str, *, byte_range: tuple[int, int | None] | None = None) -> PodObject:
        """`byte_range` is first and last byte, as in RFC 9110 14; the last may be None, or lie beyond the end."""
        self._object(path)
        if byte_range is None:
            return await self._opened(path)
        first, last = byte_range
        if first < 0 or (last is not None and last < first):
            raise refuse("/byte_range", "is no range")
        try:
            return await self._opened(path, byte_range, byte_range)
        except ValidationError:
            size = (await self.head(path)).size or 0
            if first >= size:
                raise refuse("/byte_range", f"does not lie in an object of {size} bytes") from None
        # To a server that takes neither one byte nor an end beyond the end: a few more bytes, of which ours are cut out.
        return await self._opened(path, byte_range, (min(first, size - 2), size - 1) if size > 1 else None)

    async def head(self, path: str) -> PodMeta:
        self._line.check_open()
        parse(path, "either")
        return meta_of(path, await self._reading("HEAD", path, "head", _ANY))

    async def patch(
        self, path: str, patch: bytes, *, patch_type: str = JSON_PATCH, if_match: str | None = None
    ) -> PodMeta:
        self._object(path)
        kind = essence(patch_type)
        if kind == JSON_PATCH and JSON_PATCH not in self._facts.patches:
            lock = self._patching.setdefault(path, asyncio.Lock())
            async with lock:
                return await self._emulated(path, operations(patch, patch_type), if_match)
        if kind not in (JSON_PATCH, N3_PATCH) or kind not in self._facts.patches:
            raise UnsupportedPatch(f"cannot apply a patch of type {kind}", supported=self._supported())
        before = await self.head(path)
        headers = {"Content-Type": patch_type, "If-Match": if_match or "*"}
        try:
            done = await self._line.ask("PATCH", path, method="patch", headers=headers, content=patch)
        except PreconditionFailed as error:
            raise await self._with_tag(path, error) from None
        return await self._written(path, done, before.content_type, None)

    async def delete(self, path: str, *, if_match: str | None = None) -> None:
        self._line.check_open()
        parse(path, "either")
        wanted = {} if if_match is None else {"If-Match": if_match}
        try:
            await self._line.ask("DELETE", path, method="delete", headers=wanted)
        except PreconditionFailed as error:
            raise await self._with_tag(path, error) from None
        except (PermissionDenied, BackendError):
            await self._check_above(path, "delete")
            raise

    async def list(self, container: str = "", *, limit: int = 100, cursor: str | None = None) -> Page[PodMeta]:
        """In the byte order of names, within each page of a server that pages itself."""
        self._line.check_open()
        parse(container, "container", "/container")
        check_range(limit, "/limit", LIMIT)
        listing = ["list", container]
        query, after = key_of(cursor, listing, 2) or ("", "")
        found: list[PodMeta] = []
        while True:
            named, following = await page(self._line, container, query, twice=self._facts.twice)
            for name in listed(list(named)):
                if name.encode() <= after.encode():
                    continue
                if len(found) == limit:
                    return Page(items=tuple(found), next_cursor=cursor_of(listing, (query, after)))
                found.append(await self._listed(container, named[name]))
                after = name
            if following is None:
                return Page(items=tuple(found), next_cursor=None)
            query, after = following, ""

    async def _listed(self, container: str, member: Member) -> PodMeta:
        """A listed member; one of which the listing says too little is asked for."""
        path = f"{container}{member.name}" + ("/" if member.kind == "container" else "")
        if member.modified_at is None or (member.kind == "object" and member.size is None):
            return await self.head(path)
        kind = CONTAINER_TYPE if member.kind == "container" else member.media_type
        size = None if member.kind == "container" else member.size
        return PodMeta(
            path=path, kind=member.kind, size=size, content_type=kind, etag=None, modified_at=member.modified_at
        )

    async def _opened(self, path: str, byte_range: Span = None, asked: Span = None) -> PodObject:
        """A body of at most 1 MiB is read before this returns; of a larger one the pieces come as they are asked for."""
        answer = await self._reading("GET", path, "read", {**_ANY, **_range(asked)})
        if not answer.is_closed and "content-length" in answer.headers:
            meta = meta_of(path, answer)
            body: AsyncIterator[bytes] = self._line.pieces(answer, "read")
        else:
            content = await self._line.whole(answer, "read", self._cap)
            check_cap(len(content), self._cap)
            meta, body = meta_of(path, answer, len(content)), at_once(content)
        if byte_range is not None:  # what was asked for, whatever part a server sends
            start, size = span(byte_range, meta.size or 0)
            body = cut(body, start - begin_of(answer), size)
        return PodObject(meta=meta, body=body)

    async def _reading(self, verb: str, path: str, method: str, headers: dict[str, str]) -> httpx.Response:
        """The answer to a request that changes nothing. To a path below an object some servers answer with any error."""
        try:
            return await self._line.ask(verb, path, method=method, headers=headers, again=True)
        except (PermissionDenied, BackendError):
            await self._check_above(path, method)
            raise

    async def _emulated(self, path: str, wanted: Any, if_match: str | None) -> PodMeta:
        """JSON Patch for a server that has none: read, apply, write if it is still the same (P15)."""
        last = PreconditionFailed(f"cannot patch {path}: it changes all the time", etag=None)
        for _ in range(ROUNDS):
            found = await self._reading("GET", path, "patch", _ANY)
            body = await self._line.whole(found, "patch", self._cap)
            check_cap(len(body), self._cap)
            meta = meta_of(path, found, len(body))
            Conditions(if_match).check(path, meta.etag)
            after = apply(body, meta.content_type, wanted)
            if not is_strong(meta.etag):
                raise UnsupportedPatch(
                    f"cannot patch {path}: the server gives it no strong tag", supported=self._supported()
                )
            try:
                async with outgoing(after, self._cap, at_once=True) as content:
                    return (await self._put(path, content, meta.content_type, {"If-Match": meta.etag or ""}))[0]
            except PreconditionFailed as error:
                last = error
        raise last

    async def _written(self, path: str, done: httpx.Response, kind: str, size: int | None) -> PodMeta:
        told = done.headers
        if size is None or "etag" not in told or "last-modified" not in told:
            return await self.head(path)
        at = meta_of(path, done).modified_at
        return PodMeta(path=path, kind="object", size=size, content_type=kind, etag=told["etag"], modified_at=at)

    async def _conditions(self, path: str, if_match: str | None, if_none_match: str | None) -> dict[str, str]:
        """As headers. Of servers that are no box some let `If-Match` create what is missing, and some judge tags in
        `If-None-Match` as nobody else: such are judged here first, and then said as what must be there."""
        wanted = {"If-Match": if_match, "If-None-Match": if_none_match}
        if self._facts.strict or (if_match is None and if_none_match in (None, "*")):
            return {name: value for name, value in wanted.items() if value is not None}
        try:
            etag = (await self.head(path)).etag
        except NotFound:
            Conditions(if_match).check(path, None)
            return {"If-None-Match": "*"}
        Conditions(if_match, if_none_match).check(path, etag)
        return {"If-Match": etag or "*"}

    async def _with_tag(self, path: str, error: PreconditionFailed) -> PreconditionFailed:
        """The error, with the tag that is there now."""
        if error.members["etag"] is not None:
            return error
        try:
            etag = (await self.head(path)).etag
        except NotFound:
            etag = None
        return PreconditionFailed(error.message, etag=etag)

    async def _check_above(self, path: str, method: str) -> None:
        """Raises NotFound for a path below an object."""
        if await self._object_above(path, method) is not None:
            raise NotFound(f"cannot find {path}", resource="pod", id=path)

    async def _object_above(self, path: str, method: str) -> str | None:
        """The parent of a path that is an object and no container; None where there is no such."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            if (await self._line.raw("HEAD", above, method=method, headers=_ANY, again=True)).is_success:
                return above
        return None

    def _object(self, path: str) -> None:
        """Checks the path of an object. Raises ValidationError for a name that is the server's own."""
        self._line.check_open()
        where = parse(path)
        if where.name.endswith(self._facts.reserved):
            raise refuse("/path", f"ends in {' or '.join(self._facts.reserved)}, which the server keeps for itself")

    def _supported(self) -> builtins.list[str]:
        return [kind for name, kind in _PATCHES.items() if name in self.capabilities]


def _range(byte_range: Span) -> dict[str, str]:
    if byte_range is None:
        return {}
    first, last = byte_range
    return {"Range": f"bytes={first}-{'' if last is None else last}"}
