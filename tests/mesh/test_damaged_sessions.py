"""Sessions that a host cannot read are reported, the rest of the box serves, and the mesh is
degraded."""

from pathlib import Path

import apsw
import pytest
from helpers import until
from meshes import Start, refusal
from support.api_box import ApiBox
from support.mesh import ManualBox, host_plan

from agentbox.contracts.mesh import MeshSession
from agentbox.mesh.host.session_store import SessionStore


async def loaded(directory: Path) -> SessionStore:
    """An open store."""
    store = SessionStore(directory)
    assert await store.load() is not None
    return store


def session(number: int) -> MeshSession:
    names = ("boot_id", "principal", "image_hash", "plan_digest", "posture_digest")
    return MeshSession.from_wire({
        **dict.fromkeys(names, "x"), "id": f"s{number}", "instance_id": f"i{number}", "contracts": {}, "impls": {},
        "opened_at": "2026-01-01T00:00:00.000Z",
    })  # fmt: skip


DAMAGE = {
    "document = '{'": "session s1",
    "document = '[]'": "session s1",
    "document = json_remove(document, '$.boot_id')": "session s1",
    "document = CAST(x'7bff' AS TEXT)": "session s1",
    "id = CAST(x'7331ff' AS TEXT)": "session s1\\xff",
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_session(tmp_path: Path, damage: str) -> None:
    """The others are listed page by page and loaded at the start; it is reported."""
    store = await loaded(tmp_path)
    for number in range(4):
        await store.save(session(number), token=bytes([number]), secret=bytes([number]))
    with apsw.Connection(str(tmp_path / "sessions.db")) as db:
        db.execute(f"UPDATE sessions SET {damage} WHERE id = 's1'")
    for limit in (1, 2, 3, 10):
        result, after = [], ""
        while page := await store.page({"state": "active"}, limit, after):
            result += [one.id for one in page]
            after = result[-1]
        assert result == ["s0", "s2", "s3"]
    await store.close()
    stored = await store.load()
    assert stored is not None
    assert [one.id for one in stored.active] == ["s0", "s2", "s3"]
    assert list(store._damaged._names) == [f"cannot read {DAMAGE[damage]}: its row is damaged"]
    assert store.condition == (
        "degraded",
        "unreadable rows of sessions.db, listed in the log: 1",
    )
    await store.close()


async def test_damaged_keys_of_instances_and_tokens(tmp_path: Path) -> None:
    """Their secrets and tokens are unknown; those of the others are known."""
    store = await loaded(tmp_path)
    for number in range(2):
        await store.save(session(number), token=bytes([number]), secret=bytes([number]))
    with apsw.Connection(str(tmp_path / "sessions.db")) as db:
        db.execute("UPDATE instances SET id = CAST(x'ff41' AS TEXT) WHERE id = 'i0'")
        db.execute("UPDATE tokens SET session_id = CAST(x'ff41' AS TEXT) WHERE session_id = 's0'")
    await store.close()
    stored = await store.load()
    assert stored is not None
    assert (stored.secrets, stored.tokens) == ({"i1": b"\1"}, {b"\1": "s1"})
    named = [
        f"cannot read {what} \\xffA: its row is damaged"
        for what in ("instance", "token of session")
    ]
    assert list(store._damaged._names) == named
    await store.close()


def degraded(host: ApiBox) -> bool:
    """Whether each place reports it, and readiness does not miss it."""
    with host.client() as client:
        health, ready = client.call("health"), client.call("ready", accepted=(503,))
    assert not [name for name in ready["missing"] if "mesh" in name]
    return (health["degraded_count"], health["mesh"]["state"] != "hosting", ready["degraded"]) == (
        1,
        True,
        ["mesh"],
    )


def test_a_host_with_a_damaged_session_serves_the_others(start: Start) -> None:
    """The box of that session joins anew."""
    host = start(host_plan())
    broken, sound = ManualBox(host), ManualBox(host)
    broken.register()
    sound.register()
    host.stop()
    with apsw.Connection(str(host.paths.slot("mesh") / "sessions.db")) as db:
        db.execute("UPDATE sessions SET document = '{' WHERE id = ?", (broken.session_id,))
    host.start()
    assert sound.heartbeat()
    assert refusal(broken.heartbeat).status == 401
    until(lambda: degraded(host))
    with host.client() as operator:
        status = operator.call("mesh_status")
        assert (status["state"], "sessions.db" in status["reason"]) == ("degraded", True)
        assert [row["id"] for row in operator.call("mesh_sessions")["items"]] == [sound.session_id]
        refused = refusal(lambda: operator.call("mesh_session", {"id": broken.session_id}))
    assert refused.code == "integrity"
    broken.register()
    assert broken.heartbeat()


def test_a_host_whose_sessions_are_no_database_serves_the_rest(start: Start) -> None:
    """Calls of the mesh that cannot be served have the reason; once the file is replaced boxes join
    without a restart."""
    host = start(host_plan())
    box = ManualBox(host)
    box.register()
    host.stop()
    path = host.paths.slot("mesh") / "sessions.db"
    stored = path.read_bytes()
    path.write_bytes(b"no database" * 1000)
    host.start()
    until(lambda: degraded(host))
    with host.client() as operator:
        assert operator.call("list_beads")["items"] == []
        status = operator.call("mesh_status")
        assert (status["state"], status["reason"]) == (
            "down",
            "cannot use sessions.db: the file is not a database",
        )
        refused = refusal(lambda: operator.call("mesh_sessions"))
    assert (refused.status, refused.code) == (502, "backend-error")
    assert refusal(box.register).status == 502
    path.write_bytes(stored)
    until(lambda: not degraded(host))
    assert box.heartbeat()
