"""A held box: it reads, and admits, starts and sends nothing until it is released."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import until
from support.api_box import ApiBox

from agentbox.api.hold import ALLOWED, hold
from agentbox.client import ApiError
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.contracts.routes.registry import ROUTES
from agentbox.core.paths import Paths


@pytest.fixture
def held() -> Iterator[ApiBox]:
    """A box that starts held, with a task from before that is not finished."""
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    with ApiBox(folder) as box, box.client() as client:
        client.beads.create_epic("before")
        box.stop()
        hold(Paths(folder), 7)
        box.start()
        yield box
    shutil.rmtree(folder)


def test_nothing_is_written_before_the_release(held: ApiBox) -> None:
    """503 `held` with Retry-After for each kind of write; reads work; the release ends it, is
    journalled once, and may be repeated."""
    with held.client() as client:
        state = client.generation.show()
        assert state.held
        assert state.generation == 7
        assert state.stores["beads/beads.db"].rows == 1
        writes = (
            lambda: client.beads.create_epic("refused"),
            lambda: client.pods.write("a/b", b"x"),
            lambda: client.submit_task(AgentSpec(name="x", argv=("true",), profile="sandboxed")),
            lambda: client.agents.spawn(AgentSpec(name="x", argv=("true",), profile="sandboxed")),
        )
        for write in writes:
            with pytest.raises(ApiError) as caught:
                write()
            assert (caught.value.status, caught.value.code) == (503, "held")
            assert caught.value.problem["generation"] == 7
        assert [bead.title for bead in client.beads.list().items] == ["before"]
        assert client.generation.try_agent().reason == ""
        assert Paths(held.paths.prefix).held.exists()
        released = client.generation.release()
        assert not released.held
        assert not held.paths.held.exists()
        assert not client.generation.release().held
        client.beads.create_epic("after")
        confirmed = [
            event
            for event in client.events.read(limit=100).events
            if event.type == "generation.confirmed"
        ]
        assert [event.data["generation"] for event in confirmed] == [7]


def test_a_released_box_runs_tasks(held: ApiBox) -> None:
    """The task runner starts with the release."""
    with held.client() as client:
        client.generation.release()
        spec = AgentSpec(name="after", argv=("true",), profile="sandboxed")
        task = client.submit_task(spec).task_id
        until(lambda: client.get_task(task).state == "succeeded")


def test_what_a_held_box_serves_is_listed() -> None:
    """Every other route but a GET is refused."""
    names = {route.name for route in ROUTES}
    assert names >= ALLOWED
    assert len(ALLOWED) == 3


def test_the_file_says_which_generation(tmp_path: Path) -> None:
    """For whoever finds a box that refuses writes."""
    paths = Paths(tmp_path)
    hold(paths, 3)
    assert json.loads(paths.held.read_text()) == {"generation": 3}
