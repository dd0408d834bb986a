"""A host: admission of boxes, rights of a session, its end."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from helpers import until
from meshes import Start, refusal, told
from support.api_box import ApiBox
from support.mesh import ENROLMENT, ManualBox, host_plan

from agentbox.client import ApiError
from agentbox.client.transport import build_call
from agentbox.contracts.routes.registry import ROUTES
from agentbox.contracts.routes.route import Route


def test_a_box_joins_beats_and_leaves(host: ApiBox) -> None:
    """The response lists what is offered and where; each step is shown to the operator and
    journaled."""
    box = ManualBox(host)
    result = box.register()
    assert (result["resumed"], result["heartbeat_s"], result["lease_s"]) == (False, 30.0, 100.0)
    assert {slot: row["url"] for slot, row in result["endpoints"].items()} == {
        "beads": host.url, "pods": f"{host.url}/v1/pods/boxes/{box.instance_id}/", "events": f"{host.url}/v1/events",
    }  # fmt: skip
    response = box.heartbeat(health={"beads": "ok"}, ready=True, journal={"seq": 7, "hash": "h"})
    assert response["endpoints_rev"] == result["endpoints_rev"]
    with host.client() as operator:
        shown = operator.call("mesh_session", {"id": box.session_id})
        assert (shown["state"], shown["beat"], shown["journal"]) == (
            "active",
            1,
            {"seq": 7, "hash": "h"},
        )
        assert box.session_id in [row["id"] for row in operator.call("mesh_sessions")["items"]]
        mine = operator.call(
            "mesh_sessions", query={"instance": box.instance_id, "state": "active"}
        )["items"]
        assert [row["id"] for row in mine] == [box.session_id]
        assert operator.call("mesh_status")["state"] == "hosting"
    assert box.deregister()["state"] == "closed"
    assert box.deregister()["state"] == "closed"
    assert refusal(box.heartbeat).problem["reason"] == "closed"
    kinds = ("mesh.session.opened", "mesh.session.closed")
    assert [told(host, kind, instance=box.instance_id)[0]["session"] for kind in kinds] == [
        box.session_id
    ] * 2


def test_F01_a_register_may_be_repeated(host: ApiBox) -> None:
    """Twenty at once make one session; of its tokens the newest is valid, and so is the previous
    one."""
    box = ManualBox(host)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: _registered(host, box), range(20)))
    taken = [answer for answer in answers if isinstance(answer, dict)]
    assert {answer.status for answer in answers if isinstance(answer, ApiError)} <= {429}
    assert len(taken) == 10
    assert len({answer["session_id"] for answer in taken}) == 1
    assert sorted(answer["resumed"] for answer in taken) == [False, *[True] * 9]
    for response in taken:
        with host.client(response["token"]) as client:
            client.call("list_beads")
    with host.client() as operator:
        query = {"instance": box.instance_id}
        assert len(operator.call("mesh_sessions", query=query)["items"]) == 1


def _registered(host: ApiBox, box: ManualBox) -> Any:
    with host.client(ENROLMENT) as client:
        try:
            return client.call("mesh_register", body=box.register_body())
        except ApiError as error:
            return error


def test_F02_another_boot_supersedes_and_a_copy_is_refused(host: ApiBox) -> None:
    """The old session's token ends with it. Three such changes are two boxes with one identity: both are refused."""
    box = ManualBox(host)
    first = box.register()
    box.register(boot_id=str(uuid4()))
    with host.client(first["token"]) as old:
        assert refusal(lambda: old.call("list_beads")).status == 401
        beat = {"session_id": first["session_id"], "beat": 1}
        over = refusal(lambda: old.call("mesh_heartbeat", body=beat))
    assert (over.status, over.code, over.problem["reason"]) == (410, "session-ended", "superseded")
    box.register(boot_id=str(uuid4()))
    for boot in (str(uuid4()), box.boot_id):
        refused = refusal(lambda boot=boot: box.register(boot_id=boot))
        assert (refused.status, refused.code) == (409, "duplicate-instance")
    assert refusal(box.heartbeat).problem["reason"] == "superseded"
    other = ManualBox(host)
    other.register()


def test_F01_an_instance_has_one_secret(host: ApiBox) -> None:
    """A caller that knows only the id cannot resume the session, even with the boot's id."""
    box, thief = ManualBox(host), ManualBox(host)
    box.register()
    thief.instance_id, thief.boot_id = box.instance_id, box.boot_id
    assert refusal(thief.register).code == "not-admitted"
    box.heartbeat()


def test_F03_a_beat_must_grow(host: ApiBox) -> None:
    """An equal or lower one is answered and changes nothing."""
    box = ManualBox(host)
    box.register()
    box.heartbeat(ready=True)
    box.heartbeat(ready=True)
    for beat in (2, 1):
        box.heartbeat(beat=beat, ready=False)
    with host.client() as operator:
        shown = operator.call("mesh_session", {"id": box.session_id})
    assert (shown["beat"], shown["ready"]) == (2, True)


def test_F05_contracts_are_compared(host: ApiBox) -> None:
    """One refusal names every slot; a slot that is not shared does not matter; the lower MINOR is used."""
    box = ManualBox(host)
    wrong = {**box.contracts, "beads": "2.0.0", "pods": "0.9.0", "memory": "7.0.0"}
    refused = refusal(lambda: box.register(contracts=wrong))
    assert (refused.status, refused.code) == (409, "contract-mismatch")
    assert refused.problem["mismatches"] == [
        {"slot": "beads", "ours": "1.0.0", "theirs": "2.0.0"}, {"slot": "pods", "ours": "1.0.0", "theirs": "0.9.0"},
    ]  # fmt: skip
    assert refusal(lambda: box.register(protocol=2)).code == "contract-mismatch"
    result = box.register(
        contracts={**box.contracts, "beads": "1.7.0"},
        impls={"beads": "external-http", "pods": "local-fs"},
    )
    assert result["contracts"]["beads"] == "1.0.0"


def test_a_host_may_name_its_images(start: Start) -> None:
    """And only the configured number of boxes; others are refused with the reason."""
    box = start(host_plan(admit_images=("sha256:" + "a" * 64,), max_clients=2))
    one, two, three, foreign = (ManualBox(box) for _ in range(4))
    foreign.image_hash = "sha256:" + "b" * 64
    assert refusal(foreign.register).code == "not-admitted"
    one.register()
    two.register()
    full = refusal(three.register)
    assert (full.status, full.problem["config_path"]) == (507, "mesh.max_clients")
    one.register()
    two.deregister()
    three.register()


def test_F13_a_silent_box_is_evicted_and_a_restart_evicts_nobody(start: Start) -> None:
    """Lease of 100 s, here 5 s. A host that was down gives each session a full lease again."""
    host = start(host_plan())
    silent, beating = ManualBox(host), ManualBox(host)
    silent.register()
    beating.register()
    host.kill()
    host.start()
    assert silent.heartbeat()
    assert beating.heartbeat()
    until(
        lambda: (
            beating.heartbeat() and told(host, "mesh.session.evicted", instance=silent.instance_id)
        ),
        12,
    )
    assert refusal(silent.heartbeat).problem["reason"] == "expired"
    assert told(host, "mesh.session.evicted", instance=beating.instance_id) == []
    with silent.client() as client:
        assert refusal(lambda: client.call("list_beads")).status == 401
    assert silent.register()["resumed"] is False


def test_F14_eviction_ends_the_token(host: ApiBox) -> None:
    """At once, and after a restart of the host; the box may join again."""
    box = ManualBox(host)
    box.register()
    with host.client() as operator, box.client() as client:
        client.call("list_beads")
        operator.call("mesh_evict", {"id": box.session_id})
        assert refusal(lambda: client.call("list_beads")).status == 401
        assert refusal(lambda: operator.call("mesh_evict", {"id": box.session_id})).status == 404
    assert refusal(box.heartbeat).problem["reason"] == "evicted"
    host.kill()
    host.start()
    assert refusal(box.heartbeat).problem["reason"] == "evicted"
    assert box.register()["resumed"] is False


def test_F14_no_token_is_kept(host: ApiBox) -> None:
    """Neither value nor secret is in a file of the box, its log included."""
    box = ManualBox(host)
    token = box.register()["token"].encode()
    needles = (token, box.secret, box.register_body()["instance_secret"].encode())
    files = [path for path in host.paths.prefix.rglob("*") if path.is_file()]
    assert [path for path in files if any(needle in path.read_bytes() for needle in needles)] == []
    store = host.paths.slot("mesh") / "sessions.db"
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        assert db.execute("SELECT count(*) FROM tokens").fetchone()[0] > 0
    assert store.stat().st_mode & 0o077 == 0


OPEN_TO_A_BOX = {
    "beads:read", "beads:write", "pods:read", "pods:write", "events:write", "mesh:session",
}  # fmt: skip


@pytest.mark.parametrize("route", [row for row in ROUTES if row.scope], ids=lambda row: row.name)
def test_F15_a_box_has_no_scope_but_its_own(host: ApiBox, route: Route) -> None:
    """Every row of the table that a box has no business with is 403 to its token."""
    box = _joined(host)
    call = build_call(route.name, dict.fromkeys(route.parameters, "x"))
    with box.client() as client:
        status = client.send(call, accepted=tuple(range(400, 600))).status_code
    assert (status == 403) == (not set(route.scope) <= OPEN_TO_A_BOX or "pod" in route.name)


_BOXES: dict[str, ManualBox] = {}


def _joined(host: ApiBox) -> ManualBox:
    if host.url not in _BOXES:
        _BOXES[host.url] = ManualBox(host)
        _BOXES[host.url].register()
    return _BOXES[host.url]


def test_F15_a_box_has_nothing_of_another(host: ApiBox) -> None:
    """Not its session, not its pods, not its name."""
    mine, theirs = ManualBox(host), ManualBox(host)
    mine.register()
    theirs.register()
    with mine.client() as client, theirs.client() as other:
        other.pods.write(f"boxes/{theirs.instance_id}/x", b"secret")
        for path in (f"boxes/{theirs.instance_id}/x", "boxes/", "x"):
            read = client.pods.list if path.endswith("/") else client.pods.read
            assert refusal(lambda read=read, path=path: read(path)).status == 403
        for name in ("mesh_heartbeat", "mesh_deregister"):
            body = {"session_id": theirs.session_id, "beat": 100}
            assert (
                refusal(lambda name=name, body=body: client.call(name, body=body)).problem["reason"]
                == "unknown"
            )
        for name in (
            f"urn:agentbox:box:{theirs.instance_id}",
            "urn:agentbox:operator",
            f"urn:agentbox:box:{mine.instance_id}x",
        ):
            body = {"title": "x", "creator": name}
            assert refusal(lambda body=body: client.call("create_epic", body=body)).status == 403
        own = f"urn:agentbox:box:{mine.instance_id}"
        assert client.call("create_epic", body={"title": "x"})["creator"] == own
        agent = f"{own}:urn:agentbox:agent:a"
        assert client.call("create_epic", body={"title": "x", "creator": agent})["creator"] == agent
        events = {
            "events": [
                {"type": "test.x", "data": {}, "source": f"urn:agentbox:box:{theirs.instance_id}"}
            ]
        }
        assert refusal(lambda: client.call("append_events", body=events)).status == 403
    theirs.heartbeat()


def test_F16_a_flood_is_refused(host: ApiBox) -> None:
    """Ten a minute; then 429 with the time to wait. Other boxes are not delayed."""
    box = ManualBox(host)
    for _ in range(10):
        box.register()
    refused = refusal(box.register)
    assert (refused.status, refused.problem["limit"]) == (429, "10/min")
    assert 30 < (refused.retry_after or 0) <= 60
    ManualBox(host).register()
