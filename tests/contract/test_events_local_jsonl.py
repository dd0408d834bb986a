"""events local-jsonl meets the contract of the slot with each way of syncing."""

import json
import os
import subprocess
import sys

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.events import EventsContract
from agentbox_testkit.contracts.events_common import fill
from agentbox_testkit.contracts.events_received import foreign_journal
from agentbox_testkit.local_store import LocalStore

from agentbox.adapters.events.journal.prune import prune
from agentbox.contracts.events import Received


@pytest_asyncio.fixture
async def store(tmp_path, clock, request):
    made = LocalStore(
        "events", "local-jsonl", tmp_path, clock=clock, options={"fsync": request.cls.fsync}
    )
    yield made
    await made.close_all()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


class FewKills:
    @pytest.fixture
    def kills(self, full):
        """Of the writer, at different moments."""
        return 20 if full else 3


class TestLocalJsonl(FewKills, EventsContract):
    fsync = "group"


@pytest.mark.sampled(4)
class TestAlways(FewKills, EventsContract):
    fsync = "always"


@pytest.mark.sampled(4)
class TestInterval(FewKills, EventsContract):
    fsync = "interval"


async def test_what_a_box_delivered_is_known_when_its_records_are_pruned(tmp_path, clock):
    """V16 outlives the segments (V12): `origins.json` records how far the box is. Without that file
    the remaining records do."""
    store, sent = LocalStore("events", "local-jsonl", tmp_path, clock=clock), foreign_journal(30)
    adapter = await store.open()
    for records in (sent[:10], sent[10:20]):
        await adapter.receive("one", records)
        clock.advance(86400)
        await fill(adapter, 10)
    await store.close_all()
    prune(store.directory, before_day="2026-01-03")
    adapter = await store.open()
    assert not [event for event in (await adapter.read(since=31)).events if event.origin]
    assert (await adapter.receive("one", sent[5:15])).stored == 0
    assert await adapter.receive("one", sent) == Received(
        stored=10, watermark=29, first_seq=42, last_seq=51
    )
    assert (await adapter.verify()).ok
    await store.close_all()
    (store.directory / "origins.json").unlink()
    assert (await (await store.open()).receive("one", sent)).stored == 0
    await store.close_all()


def test_a_fixed_record_has_a_fixed_hash():
    """A record hashes to the value that every release so far gave it."""
    from datetime import UTC, datetime

    import rfc8785

    from agentbox.adapters.events.journal.chain import encode_line
    from agentbox.contracts.events import GENESIS

    record = {
        "agent_id": None, "data": {"reason": "start"}, "id": "01938f5e-0000-7000-8000-000000000000", "session_id": None,
        "source": "urn:agentbox:box:test", "subject": None, "trace_id": None, "type": "journal.opened",
    }  # fmt: skip
    members = {name: rfc8785.dumps(value) for name, value in record.items()}
    _, digest = encode_line(members, 0, datetime(2026, 1, 1, tzinfo=UTC), GENESIS)
    assert digest == "d1c1ba08673ee380b436de4b225a66b6c6e1b9bd52f4f5d25e40a512cc373253"


@pytest.mark.parametrize("sync", ["group", "always"])
def test_a_full_file_system(tmp_path, sync):
    """V13 on a full tmpfs of 5 MiB: QuotaExceeded, health degraded, every acknowledged record is
    stored; with space again the same journal continues without a restart."""
    script = """
        mount -t tmpfs -o size=5m none "$1"
        trap 'umount "$1"' EXIT
        "$2" -m agentbox_testkit.worker events local-jsonl "$1" "$3" "" fill-disk "$1"
    """
    own = (
        [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    )  # root needs no permission to mount
    words = [*own, "sh", "-ec", script, "sh"]
    done = subprocess.run(
        [*words, str(tmp_path), sys.executable, json.dumps({"fsync": sync})],
        input=b"{}\n",  # no credentials
        capture_output=True,
        timeout=120,
        check=True,
    )
    *told, end = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [line for line in told if "error" in line]
    assert errors == [{"error": "QuotaExceeded", "health": "degraded"}]
    acknowledged = [line for line in told if "seq" in line]
    assert len(acknowledged) > 1000
    assert (end["health"], end["ok"]) == ("ok", True)
    assert [line["hash"] for line in acknowledged] == [
        end["hashes"][line["seq"]] for line in acknowledged
    ]
    assert told.index(errors[0]) == len(told) - 2
