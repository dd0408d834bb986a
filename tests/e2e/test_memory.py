"""A box whose embedding model changed: what it reports, and the command that fixes it, without any
container engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from cli_box import CliBox
from harness.waiting import wait_for

from agentbox.client import BoxClient
from agentbox.core.paths import Paths

PORT = 29190


class Remembering(CliBox):
    """Its memory is on."""

    def write(self, extra: str | None = None) -> None:
        super().write(extra)
        self.manifest.write_text(
            self.manifest.read_text().replace('adapters.memory.use = "off"\n', "")
        )


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remembering]:
    made = Remembering(tmp_path_factory.mktemp("memory"), "agentbox-e2e-memory", PORT)
    made.down()
    made.up("--engine", "process")
    yield made
    made.down()


def test_a_memory_of_another_model_is_mended_by_the_command_that_it_names(box: Remembering) -> None:
    """The slot is degraded and reports why; after `memory reembed` it recovers by itself, and
    finds."""
    record = json.loads((box.state / "record.json").read_text())
    client = BoxClient(
        box.url, token=Paths(Path(record["root"])).api_key.read_text().strip(), timeout=30
    )
    with client:
        client.memory.store("k", "a whale in the harbour")
        assert box("memory", "reembed").out.startswith("nothing to do: ")
        with apsw.Connection(str(Paths(Path(record["root"])).slot("memory") / "memory.db")) as db:
            db.execute("UPDATE model SET model_id = 'static-256/other', files = 'others'")
        assert box("restart").code == 0
        assert client.ready().degraded == ("memory",)
        wait_for(
            lambda: "agentbox memory reembed" in box("logs").out, 60, "the log names the command"
        )
        said = json.loads(box("--json", "memory", "reembed").out)
        assert (said["old"], said["rewritten"]) == ("static-256/other", 1)
        wait_for(lambda: not client.ready().degraded, 60, "the memory is tried again")
        assert [hit.entry.key for hit in client.memory.search("whale")] == ["k"]


def test_without_a_box_it_says_so(tmp_path: Path) -> None:
    """Exit 8, as of every verb that needs one."""
    ran = Remembering(tmp_path, "agentbox-e2e-none", PORT + 10)("memory", "reembed")
    assert ran.code == 8
    assert ran.error()[0].startswith("cannot ")
