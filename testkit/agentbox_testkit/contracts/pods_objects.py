"""P1 to P5 and P11: bodies, tags, conditions, patches and caps."""

import asyncio
import json
from typing import Any, ClassVar

import pytest

from agentbox.core.slot_errors import (
    NotFound,
    PatchFailed,
    PreconditionFailed,
    QuotaExceeded,
    UnsupportedPatch,
    ValidationError,
    ValueTooLarge,
)
from agentbox_testkit.contracts.common import expect_error, transport
from agentbox_testkit.contracts.pods_common import JSON, in_chunks, list_paths, read_body

CAP = 256 << 10  # of one object, in every store of this suite
QUOTA = 1 << 20
QUOTA_OBJECTS = 1000
N3 = b"""@prefix solid: <http://www.w3.org/ns/solid/terms#>.
_:p a solid:InsertDeletePatch;
  solid:inserts { <urn:a> <urn:b> 2 . }; solid:deletes { <urn:a> <urn:b> 1 . }."""


class ObjectClauses:
    """What is written is read back."""

    has_quota: ClassVar[bool] = (
        True  # False if neither the class nor its backend has one: then nothing is rejected
    )

    @transport
    @pytest.mark.parametrize("body", [bytes(range(256)), b"", b"x" * CAP])
    async def test_P01_bodies_read_back_identical(self, adapter: Any, body: bytes) -> None:
        """Every byte value, none, and a body of the maximum size; with its content type and
        size.
        """
        meta, created = await adapter.write("a/b", body, content_type="image/x-odd; q=1")
        stored = await adapter.read("a/b")
        assert created
        assert b"".join([chunk async for chunk in stored.body]) == body
        assert (meta.size, meta.content_type, meta.kind) == (
            len(body),
            "image/x-odd; q=1",
            "object",
        )
        assert (stored.meta, await adapter.head("a/b")) == (meta, meta)

    @transport
    async def test_P01_a_body_may_come_in_pieces(self, adapter: Any) -> None:
        """As one body."""
        body = bytes(range(256)) * 800
        streamed, created = await adapter.write("a", in_chunks(body, 7777))
        assert await read_body(adapter, "a") == body
        assert (streamed.size, created) == (len(body), True)

    @transport
    async def test_P01_a_range_is_exactly_those_bytes(self, adapter: Any) -> None:
        """First and last byte, the last open or beyond the end; a range outside is rejected."""
        await adapter.write("a", bytes(range(256)))
        for first, last, expected in (
            (0, 0, b"\0"),
            (10, 19, bytes(range(10, 20))),
            (250, None, bytes(range(250, 256))),
            (255, 999, b"\xff"),
        ):
            assert await read_body(adapter, "a", byte_range=(first, last)) == expected
        for outside in ((256, None), (-1, 3), (5, 4)):
            await expect_error(ValidationError, adapter.read("a", byte_range=outside))

    async def test_P02_parents_are_made_and_creation_is_told(self, adapter: Any) -> None:
        """A second write reports that nothing was created."""
        assert (await adapter.write("a/b/c", b"1"))[1]
        assert not (await adapter.write("a/b/c", b"2"))[1]
        assert (await adapter.head("a/b/")).kind == "container"
        assert await read_body(adapter, "a/b/c") == b"2"

    async def test_P02_unknown_is_not_found(self, adapter: Any) -> None:
        """For read and head, below existing and missing containers."""
        await adapter.write("a/b", b"")
        for path in ("x", "a/x", "x/y", "a/b/c"):
            error = await expect_error(NotFound, adapter.read(path))
            assert error.members["id"] == path
            await expect_error(NotFound, adapter.head(path))
        await expect_error(NotFound, adapter.head("x/"))

    async def test_P03_the_tag_changes_with_body_and_type(self, adapter: Any) -> None:
        """Strong, different for another body or type."""
        first, _ = await adapter.write("a", b"1", content_type=JSON)
        body, _ = await adapter.write("a", b"2", content_type=JSON)
        kind, _ = await adapter.write("a", b"2", content_type="text/plain")
        assert len({first.etag, body.etag, kind.etag}) == 3
        assert not first.etag.startswith("W/")

    @transport
    async def test_P04_conditions_hold_or_nothing_changes(self, adapter: Any) -> None:
        """Another tag, a missing object, create-only."""
        await expect_error(PreconditionFailed, adapter.write("a", b"1", if_match='"x"'))
        await expect_error(PreconditionFailed, adapter.write("a", b"1", if_match="*"))
        assert await list_paths(adapter) == []
        meta, _ = await adapter.write("a", b"1", if_none_match="*")
        for conditions in (
            {"if_match": '"x"'},
            {"if_none_match": "*"},
            {"if_none_match": meta.etag},
            {"if_match": f"W/{meta.etag}"},
        ):
            error = await expect_error(PreconditionFailed, adapter.write("a", b"2", **conditions))
            assert error.members["etag"] == meta.etag
        await expect_error(PreconditionFailed, adapter.delete("a", if_match='"x"'))
        await expect_error(PreconditionFailed, adapter.patch("a", b"[]", if_match='"x"'))
        assert await read_body(adapter, "a") == b"1"
        after, created = await adapter.write("a", b"2", if_match=f'"x", {meta.etag}')
        assert (created, after.etag != meta.etag) == (False, True)

    async def test_P04_of_many_creators_one_wins(self, adapter: Any) -> None:
        """32 create-only writes at once."""
        outcomes = await asyncio.gather(
            *(adapter.write("a", b"%d" % n, if_none_match="*") for n in range(32)),
            return_exceptions=True,
        )
        winners = [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Exception)]
        assert len(winners) == 1
        assert all(
            isinstance(one, PreconditionFailed)
            for n, one in enumerate(outcomes)
            if n not in winners
        )
        assert await read_body(adapter, "a") == b"%d" % winners[0]

    @pytest.fixture
    def updaters(self) -> int:
        """Of one object, at once."""
        return 32

    async def test_P04_no_update_is_lost(self, adapter: Any, updaters: int) -> None:
        """As many loops of read, increment and conditional write."""
        await adapter.write("n", b"0")

        async def add() -> None:
            while True:
                stored = await adapter.read("n")
                value = int(b"".join([chunk async for chunk in stored.body]))
                try:
                    await adapter.write("n", b"%d" % (value + 1), if_match=stored.meta.etag)
                except PreconditionFailed:
                    continue
                return

        await asyncio.gather(*(add() for _ in range(updaters)))
        assert await read_body(adapter, "n") == b"%d" % updaters

    @transport
    async def test_P05_json_patch_applies_and_reads_back(self, adapter: Any) -> None:
        """Each kind of operation; the tag changes, the type stays."""
        kind = "application/ld+json; profile=x"
        meta, _ = await adapter.write("a", b'{"a":1,"b":[1,2]}', content_type=kind)
        patch = [
            {"op": "test", "path": "/a", "value": 1},
            {"op": "replace", "path": "/a", "value": {"c": "\u00e9"}},
            {"op": "add", "path": "/b/-", "value": 3},
            {"op": "copy", "from": "/b/0", "path": "/d"},
            {"op": "move", "from": "/b/1", "path": "/e"},
            {"op": "remove", "path": "/b/0"},
        ]
        after = await adapter.patch("a", json.dumps(patch).encode(), if_match=meta.etag)
        assert json.loads(await read_body(adapter, "a")) == {
            "a": {"c": "\u00e9"},
            "b": [3],
            "d": 1,
            "e": 2,
        }
        assert (after.content_type, after.etag != meta.etag) == (kind, True)
        assert await adapter.head("a") == after

    @pytest.mark.parametrize(
        ("patch", "index"),
        [
            (
                [
                    {"op": "replace", "path": "/a", "value": 2},
                    {"op": "test", "path": "/a", "value": 3},
                ],
                1,
            ),
            ([{"op": "remove", "path": "/none"}], 0),
            (
                [
                    {"op": "add", "path": "/x", "value": 1},
                    {"op": "add", "path": "/y/z", "value": 1},
                ],
                1,
            ),
            ([{"op": "jump", "path": "/a"}], 0),
            ([{"path": "/a"}], 0),
        ],
    )
    async def test_P05_a_failing_patch_changes_nothing(
        self, adapter: Any, patch: Any, index: int
    ) -> None:
        """And reports which operation failed."""
        meta, _ = await adapter.write("a", b'{"a":1}', content_type=JSON)
        error = await expect_error(PatchFailed, adapter.patch("a", json.dumps(patch).encode()))
        assert error.members["index"] == index
        assert await read_body(adapter, "a") == b'{"a":1}'
        assert await adapter.head("a") == meta

    @transport
    async def test_P05_what_cannot_be_patched_is_refused(self, adapter: Any) -> None:
        """Another patch type, an object that is not JSON by type or by body, an invalid patch."""
        await adapter.write("text", b"{}", content_type="text/plain")
        await adapter.write("broken", b"{", content_type=JSON)
        await adapter.write("a", b"{}", content_type=JSON)
        for path, kind in (("text", None), ("broken", None), ("a", "application/merge-patch+json")):
            arguments = {} if kind is None else {"patch_type": kind}
            error = await expect_error(UnsupportedPatch, adapter.patch(path, b"[]", **arguments))
            assert "application/json-patch+json" in error.members["supported"]
        for patch in (b"{}", b"[1]", b"nonsense"):
            await expect_error(ValidationError, adapter.patch("a", patch))
        await expect_error(NotFound, adapter.patch("none", b"[]"))

    async def test_P05_an_n3_patch_changes_triples(self, adapter: Any) -> None:
        """Nothing changes if a triple to delete is missing; without `patch.n3` it is rejected."""
        meta, _ = await adapter.write("a", b"<urn:a> <urn:b> 1 .", content_type="text/turtle")
        if "patch.n3" not in adapter.capabilities:
            await expect_error(UnsupportedPatch, adapter.patch("a", N3, patch_type="text/n3"))
            assert await read_body(adapter, "a") == b"<urn:a> <urn:b> 1 ."
            return
        await expect_error(
            PreconditionFailed, adapter.patch("a", N3, patch_type="text/n3", if_match='"x"')
        )
        after = await adapter.patch("a", N3, patch_type="text/n3", if_match=meta.etag)
        assert (after.content_type, after.etag != meta.etag) == ("text/turtle", True)
        await expect_error(PatchFailed, adapter.patch("a", N3, patch_type="text/n3"))
        assert b"".join((await read_body(adapter, "a")).split()) == b"<urn:a><urn:b>2."
        await expect_error(ValidationError, adapter.patch("a", b"nonsense", patch_type="text/n3"))
        await expect_error(NotFound, adapter.patch("none", N3, patch_type="text/n3"))

    async def test_P05_patches_at_once_all_count(self, adapter: Any) -> None:
        """16 patches that append to one list."""
        await adapter.write("a", b"[]", content_type=JSON)
        patches = [
            json.dumps([{"op": "add", "path": "/-", "value": n}]).encode() for n in range(16)
        ]
        await asyncio.gather(*(adapter.patch("a", patch) for patch in patches))
        assert sorted(json.loads(await read_body(adapter, "a"))) == list(range(16))

    @transport
    async def test_P11_an_object_over_the_cap_is_refused(self, adapter: Any) -> None:
        """As one body, in chunks, by a patch; the old one is kept, nothing is left over."""
        await adapter.write("a", b'"old"', content_type=JSON)
        for body in (b"x" * (CAP + 1), in_chunks(b"x" * (CAP + 1), 4096)):
            error = await expect_error(ValueTooLarge, adapter.write("a", body, content_type=JSON))
            assert (error.members["cap"], error.members["config_path"]) == (
                CAP,
                "adapters.pods.max_object",
            )
        grow = json.dumps([{"op": "replace", "path": "", "value": "x" * CAP}]).encode()
        await expect_error(ValueTooLarge, adapter.patch("a", grow))
        assert await read_body(adapter, "a") == b'"old"'
        assert await list_paths(adapter) == ["a"]

    async def test_P11_the_quota_is_decided_before_the_old_body_is_touched(
        self, adapter: Any
    ) -> None:
        """Total bytes; deleting and shrinking free them; replacing at the limit is not growth."""
        for name in "abcd":
            await adapter.write(name, b"x" * CAP)
        if not self.has_quota:
            assert (await adapter.write("e", b"1"))[1]
            return
        error = await expect_error(QuotaExceeded, adapter.write("e", b"1"))
        assert (error.members["cap"], error.members["config_path"]) == (
            QUOTA,
            "adapters.pods.quota",
        )
        await expect_error(QuotaExceeded, adapter.write("e", in_chunks(b"12", 1)))
        assert (await adapter.write("a", b"y" * CAP))[0].size == CAP
        await adapter.write("a", b"y" * (CAP - 2))
        assert (await adapter.write("e", b"12"))[1]
        await expect_error(QuotaExceeded, adapter.write("a", b"z" * (CAP - 1)))
        assert await read_body(adapter, "a") == b"y" * (CAP - 2)
        await adapter.delete("b")
        assert (await adapter.write("f", b"x" * CAP))[1]
