"""M9: `agentbox memory reembed` is one pass over all vectors that may be killed and resumed; until
it is complete no search uses them."""

import json
import os
import shutil
import signal
import subprocess
import sys
from array import array

import apsw
import pytest
import pytest_asyncio
from agentbox_testkit.local_store import LocalStore
from memory_fill import fill, texts
from postgres_store import PostgresStore
from support.prefix_box import make_plan

from agentbox.adapters.memory.embedder import load_embedder
from agentbox.core.canonical import canonical_json
from agentbox.core.paths import PREFIX_VARIABLE
from agentbox.core.slot_errors import ModelMismatch
from agentbox.plan.model import SlotPlan

ENTRIES = 500  # two commits and a part of a third
LINES = [*texts(ENTRIES - 1), ""]  # the last has no token, hence no vector
OTHER = "UPDATE model SET model_id = 'static-256/other', files = 'others'"


class Local(LocalStore):
    """A file, changed and looked into behind the adapter's back."""

    def change(self, sql):
        with self._file() as db:
            db.execute(sql)

    def vectors(self):
        with self._file() as db:
            return dict(
                db.execute(
                    "SELECT e.key, v.vector FROM entries e LEFT JOIN vectors v ON v.entry = e.id"
                ).fetchall()
            )

    def spoil(self):
        self.change(f"UPDATE vectors SET vector = zeroblob(1024); {OTHER}")

    def _file(self):
        return apsw.Connection(str(self.directory / "memory.db"))

    async def remove(self):
        await self.close_all()


class Shared(PostgresStore):
    """A schema."""

    async def open(self):
        return await LocalStore.open(self)

    def vectors(self):
        with self.session() as db:
            rows = db.execute("SELECT key, vector::text FROM entries").fetchall()
        return {
            key: None if text is None else array("f", json.loads(text)).tobytes()
            for key, text in rows
        }

    def spoil(self):
        self.change(
            "UPDATE entries SET vector = array_fill(0, ARRAY[256])::vector WHERE vector IS NOT NULL"
        )
        self.change(OTHER)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(tmp_path_factory):
    """The prefix of a box with 500 entries in a file, which each test copies."""
    made = Local("memory", "local-sqlite", tmp_path_factory.mktemp("filled"))
    adapter = await made.open()
    for n, line in enumerate(LINES):
        await adapter.store(f"{n}", None, text=line)
    await made.remove()
    return made.prefix


@pytest_asyncio.fixture(params=["local-sqlite", "external-pg"])
async def store(request, filled, tmp_path):
    """A box's prefix with 500 entries, each with its vector."""
    options = {}
    if request.param == "local-sqlite":
        shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
        made = Local("memory", "local-sqlite", tmp_path)
    else:
        made = Shared("memory", request.getfixturevalue("postgres"), tmp_path, {})
        made.with_secrets(dsn=made.server.dsn())
        options = {"schema": made.schema, "dsn_file": "/run/secrets/dsn"}
        secret = made.cfg.paths.resolve("/run/secrets/dsn")
        secret.parent.mkdir(parents=True)
        secret.write_text(made.server.dsn())
        adapter = await made.open()
        await adapter.store("first", "whose model is noted")
        await adapter.delete("first")
        with made.session() as db:
            await fill(db, LINES)
    plan = make_plan(
        1, (), slots={"memory": SlotPlan(use=request.param, required=False, options=options)}
    )
    made.cfg.paths.plan.parent.mkdir(parents=True)
    made.cfg.paths.plan.write_bytes(canonical_json(plan.to_json()))
    yield made
    await made.remove()


def run(store, *arguments, **how):
    """The program that the command starts in the box."""
    return subprocess.Popen(
        [sys.executable, "-I", "-m", "agentbox.api.reembed", *arguments], env={**os.environ, PREFIX_VARIABLE: str(store.prefix)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how,
    )  # fmt: skip


async def refuses(store, partly):
    """Opening it reports the model of the vectors, and the command to run."""
    with pytest.raises(ModelMismatch) as refused:
        await store.open()
    assert refused.value.hint.startswith("run `agentbox memory reembed`")
    assert ("in part" in refused.value.message) == partly
    assert "static-256/other" in refused.value.message


async def test_M09_a_pass_that_is_killed_is_resumed(store):
    """By SIGKILL between two commits; every vector is then that of the model, and the store opens and finds."""
    before = store.vectors()
    await store.close_all()
    store.spoil()
    await refuses(store, partly=False)
    with run(store) as killed:
        assert killed.stdout.readline() == f"200 of {ENTRIES} entries\n"
        killed.send_signal(signal.SIGKILL)
    rewritten = sum(any(vector or b"") for vector in store.vectors().values())
    assert 0 < rewritten < ENTRIES - 1
    await refuses(store, partly=True)
    with run(store, "--json") as resumed:
        said, told = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, told
    report = json.loads(said)
    assert report["resumed"] >= 200
    assert report["resumed"] + report["rewritten"] == ENTRIES
    assert store.vectors() == before
    assert before[f"{ENTRIES - 1}"] is None
    adapter = await store.open()
    assert (await adapter.search(LINES[7], mode="vector"))[0].entry.key == "7"
    with run(store) as again:
        assert again.communicate(timeout=60)[0].startswith("nothing to do")


async def test_M09_a_box_that_has_it_open_is_refused_meanwhile(store):
    """Neither stores nor searches with vectors of two models; what needs none still works."""
    adapter = await store.open()
    await adapter.search("whale")
    store.spoil()
    for call in (
        adapter.store("new", "a whale"),
        adapter.search(LINES[3]),
        adapter.search(LINES[3], mode="text"),
    ):
        with pytest.raises(ModelMismatch, match="static-256/other"):
            await call
    assert await adapter.retrieve("new") is None
    assert await adapter.retrieve("3") is not None
    with run(store) as done:
        done.communicate(timeout=60)
    assert (await adapter.search(LINES[3], mode="vector"))[0].entry.key == "3"


async def test_M09_two_passes_at_once_do_each_entry(store):
    """They share the work or repeat it; none is skipped."""
    before = store.vectors()
    await store.close_all()
    store.spoil()
    both = [run(store), run(store)]
    for one in both:
        _said, told = one.communicate(timeout=60)
        assert one.returncode == 0, told
    assert store.vectors() == before
    assert (await (await store.open()).stats()).model_id == (
        await load_embedder("static-256")
    ).model_id
