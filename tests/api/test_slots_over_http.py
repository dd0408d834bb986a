"""Beads, events and agents over HTTP, effects read back."""

import threading
import time
import uuid

import pytest
from helpers import sh, until
from support.api_box import TOKEN, ApiBox

from agentbox.client import ApiError, AsyncBoxClient, BoxClient


def test_a_bead_lives_its_life(client: BoxClient) -> None:
    """Create, child, dependency, claim, heartbeat, release, claim again, close: each state is read back."""
    epic = client.call("create_epic", body={"title": "epic"})["id"]
    one, two = (
        client.call("create_child", {"id": epic}, body={"title": name})["id"]
        for name in ("one", "two")
    )
    client.call("add_dep", {"id": two, "blocker": one})
    assert client.call("show_bead", {"id": two})["blocked_by"] == [one]
    lease = str(uuid.uuid4())
    claim = client.call("claim_next", body={"lease_id": lease, "parent_id": epic})
    assert claim["bead"]["id"] == one
    assert (
        client.call("claim_next", body={"lease_id": str(uuid.uuid4()), "parent_id": epic}) is None
    )
    assert (
        client.call("heartbeat", {"id": one}, body={"lease_id": lease})["bead"]["status"]
        == "claimed"
    )
    client.call("release", {"id": one}, body={"lease_id": lease, "note": "later"})
    again = str(uuid.uuid4())
    client.call("claim", {"id": one}, body={"lease_id": again})
    with pytest.raises(ApiError) as lost:
        client.call("close_bead", {"id": one}, body={"lease_id": lease})
    assert lost.value.code == "lease-lost"
    client.call("close_bead", {"id": one}, body={"lease_id": again, "result": {"n": 1}})
    assert client.call("show_bead", {"id": one})["result"] == {"n": 1}
    assert [
        row["id"] for row in client.call("ready_beads", query={"parent_id": epic})["items"]
    ] == [two]
    client.call("remove_dep", {"id": two, "blocker": one})
    assert (
        client.call("list_beads", query={"parent_id": epic, "status": "open"})["items"][0][
            "blocked_by"
        ]
        == []
    )


def test_a_repeated_key_is_200(client: BoxClient) -> None:
    """The same dedup_key gives the same bead."""
    body = {"title": "x", "dedup_key": str(uuid.uuid4())}
    assert (
        client.call("create_epic", body=body)["id"] == client.call("create_epic", body=body)["id"]
    )


def test_events_are_appended_read_and_verified(client: BoxClient) -> None:
    """Contiguous numbers, a filter that advances, a chain that verifies."""
    kind = f"test.t{uuid.uuid4().hex[:8]}"
    done = client.call(
        "append_events", body={"events": [{"type": kind, "data": {"n": n}} for n in range(3)]}
    )
    assert done["last_seq"] - done["first_seq"] == 2
    page = client.call("read_events", query={"types": kind})
    assert [event["data"]["n"] for event in page["events"]] == [0, 1, 2]
    assert page["events"][0]["source"] == "urn:agentbox:operator"
    assert client.call("head_event")["seq"] >= done["last_seq"]
    assert client.call("verify_events", body={})["ok"] is True


@pytest.mark.parametrize(("media", "many"), [("cloudevents", False), ("cloudevents-batch", True)])
def test_cloudevents_are_taken(client: BoxClient, media: str, many: bool) -> None:
    """Structured JSON, single and batch, keeps id, source, subject and data."""
    event = {
        "specversion": "1.0", "id": str(uuid.uuid4()), "source": "urn:x:y", "type": "com.example.done", "subject": "s",
        "data": {"a": 1},
    }  # fmt: skip
    headers = {"Content-Type": f"application/{media}+json"}
    done = client.call("append_events", body=[event] if many else event, headers=headers)
    stored = client.call("show_event", {"seq": str(done["first_seq"])})
    assert {name: stored[name] for name in ("id", "source", "type", "subject", "data")} == {
        name: event[name] for name in ("id", "source", "type", "subject", "data")
    }


async def test_a_stream_replays_and_follows(box: ApiBox) -> None:
    """From `since` on, stored and new events arrive once each, in order; the id resumes the stream."""
    kind = f"test.s{uuid.uuid4().hex[:8]}"
    async with AsyncBoxClient(box.url, token=TOKEN) as client:

        async def append(number: int) -> None:
            await client.call(
                "append_events", body={"events": [{"type": kind, "data": {"n": number}}]}
            )

        start = (await client.call("head_event"))["seq"]
        await append(0)
        found = []
        async for event in client.stream("stream_events", query={"since": start, "types": kind}):
            found.append(event)
            if len(found) == 3:
                break
            await append(len(found))
        assert [event.event for event in found] == [kind] * 3
        assert '"n":2' in found[-1].data
        resumed = client.stream(
            "stream_events", query={"types": kind, "since": start}, since=found[1].id
        )
        assert (await anext(resumed)).id == found[2].id


def test_an_agent_is_spawned_followed_and_ended(client: BoxClient) -> None:
    """Spawn is idempotent by key; the stream replays; a signal acts; terminate ends the tree."""
    key = {"Idempotency-Key": str(uuid.uuid4())}
    body = sh("trap 'echo got; exit 4' USR1; echo up; while :; do sleep 0.05; done")
    agent = client.call("spawn", body=body, headers=key)
    handle = agent["handle"]
    assert client.call("spawn", body=body, headers=key)["handle"] == handle
    until(
        lambda: any(
            e.event == "stdout"
            for e in client.stream(
                "stream_agent", {"id": handle["agent_id"]}, query={"follow": "false"}
            )
        )
    )
    with pytest.raises(ApiError) as stale:
        client.call(
            "signal_agent", {"id": handle["agent_id"]}, body={"generation": 7, "signal": "USR1"}
        )
    assert stale.value.code == "stale-generation"
    client.call(
        "signal_agent",
        {"id": handle["agent_id"]},
        body={"generation": handle["generation"], "signal": "USR1"},
    )
    kinds = [event.event for event in client.stream("stream_agent", {"id": handle["agent_id"]})]
    assert kinds[-1] == "exit"
    ended = client.call(
        "terminate_agent", {"id": handle["agent_id"]}, query={"generation": handle["generation"]}
    )
    assert ended["code"] == 4
    assert handle["agent_id"] in [
        row["handle"]["agent_id"] for row in client.call("list_agents")["items"]
    ]


def test_a_one_shot_run_answers_its_output(client: BoxClient) -> None:
    """Standard input is passed on, the complete output is returned."""
    done = client.call("run_once", body={"spec": sh("cat; exit 3"), "stdin": "aGk="})
    assert (done["stdout"], done["exit"]["code"], done["truncated"]) == ("aGk=", 3, False)


@pytest.mark.timed
def test_a_stream_sends_comments_while_nothing_happens(box: ApiBox) -> None:
    """The first bytes are sent at once, so that a client knows that it is connected."""
    with box.client() as client:
        began = time.monotonic()
        seen = threading.Event()

        def read() -> None:
            with client._http.stream("GET", "/v1/events/stream", headers={}) as response:
                assert next(response.iter_bytes()) == b"retry: 1000\n\n"
                seen.set()

        threading.Thread(target=read, daemon=True).start()
        assert seen.wait(5)
        assert time.monotonic() - began < 5
