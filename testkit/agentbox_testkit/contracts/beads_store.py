"""B1, B2, B4, B15 and the common clauses for beads: creation, storage and rejection."""

import asyncio
import contextlib
import json
from typing import Any

import pytest

from agentbox.contracts.beads import BeadFilter
from agentbox.core.slot_errors import InvalidTransition, NotFound, ValidationError, ValueTooLarge
from agentbox_testkit.contracts.beads_common import LEASE, make_epic, make_task, new_lease_id, spec
from agentbox_testkit.contracts.common import expect_error, transport

ODD = "\u0001 \ufeff \U0001f600 e\u0301 \u00e9 \u202e \r\n\t \\u0000 '\";--"


class StoreClauses:
    """Creation, limits, durability."""

    @transport
    async def test_B01_a_created_bead_is_open_and_exact(
        self, adapter: Any, principals: tuple[str, ...]
    ) -> None:
        """Open, revision 1, no assignee; creator, tags and data as given; show returns an equal
        record.
        """
        bead_spec = spec(
            creator=principals[0],
            tags=("b", "a", "b"),
            data={"x": [1, 2.5, None, {"y": "z"}]},
            priority=0,
        )
        bead, created = await adapter.create_epic(bead_spec)
        assert created
        assert (bead.status, bead.revision, bead.assignee, bead.kind) == ("open", 1, None, "epic")
        assert (bead.creator, bead.tags, bead.data) == (
            principals[0],
            ("b", "a", "b"),
            bead_spec.data,
        )
        assert await adapter.show(bead.id) == bead

    async def test_B01_unknown_is_not_found(self, adapter: Any) -> None:
        """`show` of an unknown id reports it."""
        error = await expect_error(NotFound, adapter.show("nobody"))
        assert error.members["id"] == "nobody"

    async def test_B02_a_child_has_its_parent(self, adapter: Any) -> None:
        """The parent is set; an unknown or closed one is rejected and nothing is created."""
        epic, (child,) = await make_epic(adapter, 1)
        assert child.parent_id == epic.id
        await expect_error(NotFound, adapter.create_child("nobody", spec()))
        await adapter.close_bead(epic.id, outcome="cancelled")
        await expect_error(InvalidTransition, adapter.create_child(epic.id, spec()))
        assert len((await adapter.list(BeadFilter(parent_id=epic.id))).items) == 1

    async def test_B02_nesting_ends_at_sixteen(self, adapter: Any) -> None:
        """The sixteenth level is created, the seventeenth rejected."""
        bead, _ = await adapter.create_epic(spec())
        for _ in range(15):
            bead, _ = await adapter.create_child(bead.id, spec())
        await expect_error(ValidationError, adapter.create_child(bead.id, spec()))

    @transport
    async def test_B04_one_dedup_key_makes_one_bead(self, adapter: Any) -> None:
        """32 concurrent creates make one bead; the others return it; a closed one still counts."""
        results = await asyncio.gather(
            *(adapter.create_epic(spec(f"{n}", dedup_key="k")) for n in range(32))
        )
        assert sum(created for _, created in results) == 1
        assert len({bead.id for bead, _ in results}) == 1
        await adapter.close_bead(results[0][0].id)
        repeated, created = await adapter.create_epic(spec(dedup_key="k"))
        assert not created
        assert repeated.status == "closed"
        assert len((await adapter.list()).items) == 1

    async def test_B15_each_change_adds_one_to_the_revision(self, adapter: Any, clock: Any) -> None:
        """Claim, heartbeat, release, dependency, close: 2, 3, 4, 5, 6; updated_at never
        decreases.
        """
        bead = await make_task(adapter)
        other = await make_task(adapter)
        states = [bead]
        states.append((await adapter.claim(bead.id, "w", lease_id=LEASE)).bead)
        states.append((await adapter.heartbeat(bead.id, LEASE)).bead)
        clock.set_wall(bead.created_at.replace(year=2025))
        states.append(await adapter.release(bead.id, LEASE))
        await adapter.add_dep(bead.id, other.id)
        states.append(await adapter.show(bead.id))
        states.append(await adapter.close_bead(bead.id, outcome="failed"))
        assert [bead.revision for bead in states] == [1, 2, 3, 4, 5, 6]
        assert [bead.updated_at for bead in states] == sorted(bead.updated_at for bead in states)

    @pytest.mark.parametrize(
        ("member", "at_limit", "beyond"),
        [
            ("title", "x" * 512, "x" * 513),
            ("tags", ("x",) * 32, ("x",) * 33),
            ("tags", ("x" * 64,), ("x" * 65,)),
        ],
    )
    async def test_B15_limits_of_a_spec(
        self, adapter: Any, member: str, at_limit: Any, beyond: Any
    ) -> None:
        """A value at the limit is stored completely, one beyond it is rejected."""
        bead, _ = await adapter.create_epic(spec(**{member: at_limit}))
        assert getattr(await adapter.show(bead.id), member) == at_limit
        await expect_error(ValidationError, adapter.create_epic(spec(**{member: beyond})))

    @transport
    async def test_B15_documents_are_at_most_64_kib(self, adapter: Any) -> None:
        """Body, data and result, each as bytes."""
        maximum = 64 << 10
        bead, _ = await adapter.create_epic(
            spec(body="x" * maximum, data={"x": "y" * (maximum - 8)})
        )
        assert await adapter.show(bead.id) == bead
        await expect_error(
            ValueTooLarge, adapter.create_epic(spec(body="\u00e9" * (maximum // 2 + 1)))
        )
        await expect_error(
            ValueTooLarge, adapter.create_epic(spec(data={"x": "y" * (maximum - 7)}))
        )
        await expect_error(ValueTooLarge, adapter.close_bead(bead.id, result="x" * maximum))
        assert (await adapter.show(bead.id)).status == "open"

    async def test_B15_ranges_of_numbers(self, adapter: Any) -> None:
        """A lease of 5 to 3600 s, a page of 1 to 500."""
        bead = await make_task(adapter)
        for seconds in (4, 3601):
            await expect_error(
                ValidationError, adapter.claim(bead.id, "w", lease_id=LEASE, lease_s=seconds)
            )
        for limit in (0, 501):
            await expect_error(ValidationError, adapter.list(limit=limit))
            await expect_error(ValidationError, adapter.ready(limit=limit))
        assert (
            await adapter.claim(bead.id, "w", lease_id=LEASE, lease_s=3600)
        ).bead.status == "claimed"

    @transport
    async def test_C05_a_cancelled_create_is_whole_or_not_there(self, adapter: Any) -> None:
        """After any cancellation, each existing bead is complete and counted once."""
        tasks = [
            asyncio.create_task(adapter.create_epic(spec(f"{n}", dedup_key=f"{n}", tags=("x",))))
            for n in range(100)
        ]
        for index, task in enumerate(tasks):
            if index % 3 == 0:
                await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await adapter.create_epic(
            spec("last", dedup_key="last", tags=("x",))
        )  # everything started before has ended by then
        stored = (await adapter.list(limit=500)).items
        assert [(bead.title, bead.tags, bead.revision) for bead in stored] == [
            (b.dedup_key, ("x",), 1) for b in stored
        ]
        assert (await adapter.list(BeadFilter(tag="x"), limit=500)).items == stored

    @transport
    async def test_C06_paging_returns_each_record_once(self, adapter: Any) -> None:
        """Existing records are returned exactly once, also while others are created."""
        _, children = await make_epic(adapter, 25)
        seen, cursor = [], None
        while True:
            page = await adapter.list(BeadFilter(kind="task"), limit=4, cursor=cursor)
            seen += [bead.id for bead in page.items]
            await make_task(adapter)
            cursor = page.next_cursor
            if cursor is None or len(seen) > 200:
                break
            if len(seen) > 100:
                break
        assert [name for name in seen if name in {child.id for child in children}] == sorted(
            child.id for child in children
        )

    @transport
    async def test_C06_a_prefix_of_an_id_finds_it(self, adapter: Any) -> None:
        """Exactly the ids that begin with it, over pages too; what is no part of an id is
        refused."""
        epic, children = await make_epic(adapter, 3)
        ids = sorted(bead.id for bead in (epic, *children))
        for length in (8, 13, 30, 36):
            prefix, found, cursor = epic.id[:length], [], None
            while True:
                page = await adapter.list(BeadFilter(id_prefix=prefix), limit=2, cursor=cursor)
                found += [bead.id for bead in page.items]
                if (cursor := page.next_cursor) is None:
                    break
            assert found == [id for id in ids if id.startswith(prefix)]
        for wrong in ("", "%", "G", epic.id + "0"):
            await expect_error(ValidationError, adapter.list(BeadFilter(id_prefix=wrong)))

    @transport
    async def test_C06_a_foreign_cursor_is_refused(self, adapter: Any) -> None:
        """Of another method, of another filter, or invalid."""
        await make_epic(adapter, 3)
        cursor = (await adapter.list(limit=1)).next_cursor
        await expect_error(ValidationError, adapter.ready(cursor=cursor))
        await expect_error(ValidationError, adapter.list(BeadFilter(kind="task"), cursor=cursor))
        await expect_error(ValidationError, adapter.list(cursor="bm9ib2R5"))

    @transport
    async def test_C07_text_round_trips(self, adapter: Any) -> None:
        """Code point by code point, in each text member."""
        bead, _ = await adapter.create_epic(
            spec(ODD, body=ODD, tags=(ODD,), data={ODD: ODD}, dedup_key=ODD)
        )
        closed = await adapter.close_bead(bead.id, note=ODD, result=[ODD])
        stored = await adapter.show(bead.id)
        assert stored == closed
        assert (stored.title, stored.body, stored.tags, stored.data) == (
            ODD,
            ODD,
            (ODD,),
            {ODD: ODD},
        )
        assert (stored.dedup_key, stored.note, stored.result) == (ODD, ODD, [ODD])

    @transport
    @pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
    async def test_C07_nul_and_lone_surrogates_are_refused(self, adapter: Any, text: str) -> None:
        """In any member; nothing is created."""
        for bead_spec in (
            spec(text),
            spec(body=text),
            spec(tags=(text,)),
            spec(data={"a": [text]}),
            spec(data={text: 1}),
        ):
            await expect_error(ValidationError, adapter.create_epic(bead_spec))
        assert (await adapter.list()).items == ()

    @transport
    async def test_C08_what_was_acknowledged_survives_a_kill(self, store: Any) -> None:
        """After SIGKILL of the writing process every acknowledged bead exists."""
        async with store.worker("create-beads") as worker:
            acknowledged = [json.loads(await worker.stdout.readline()) for _ in range(100)]
            worker.kill()
            remainder, _ = await worker.communicate()
        acknowledged += [json.loads(line) for line in remainder.split(b"\n")[:-1]]
        adapter = await store.open()
        for line in acknowledged:
            assert (await adapter.show(line["id"])).title == line["title"]

    @transport
    async def test_C11_thirty_two_tasks_on_one_instance(self, adapter: Any) -> None:
        """Concurrent mixed operations leave a consistent store."""
        epic, _ = await adapter.create_epic(spec())

        async def work(number: int) -> None:
            bead, _ = await adapter.create_child(epic.id, spec(f"{number}"))
            lease_id = new_lease_id()
            await adapter.claim(bead.id, f"w{number}", lease_id=lease_id)
            await adapter.heartbeat(bead.id, lease_id)
            await adapter.close_bead(bead.id, lease_id=lease_id, result=number)

        await asyncio.gather(*(work(number) for number in range(32)))
        stored = (await adapter.list(BeadFilter(parent_id=epic.id), limit=500)).items
        assert sorted(bead.result for bead in stored) == list(range(32))
        assert {bead.revision for bead in stored} == {4}
        assert (await adapter.close_bead(epic.id)).outcome == "done"

    async def test_C11_two_processes_on_one_store(self, store: Any, adapter: Any) -> None:
        """Each bead is claimed by exactly one of them."""
        _, children = await make_epic(adapter, 120)
        async with contextlib.AsyncExitStack() as stack:
            workers = [
                await stack.enter_async_context(store.worker("claim-all", f"w{n}"))
                for n in range(2)
            ]
            outputs = [(await worker.communicate())[0] for worker in workers]
        claimed = [json.loads(line)["id"] for output in outputs for line in output.splitlines()]
        assert sorted(claimed) == sorted(child.id for child in children)
