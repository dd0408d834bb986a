"""Once the box was stopped for a restore, whatever ends the command starts the old state again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.output import Output
from agentbox.host.cli.stages import new_volumes as stages
from agentbox.host.engines.one_shot import OneShot
from agentbox.host.engines.state import BoxState
from agentbox.host.generations.record import Generation
from agentbox.host.generations.store import GenerationStore
from agentbox.host.restore import new_state

OLD: dict[str, str] = {}
NEW = {"state": "state-g2", "branches": "branches-g2"}


class Box:
    """A box on this host as the stages see it: `starts` are the volumes it was started on."""

    def __init__(self, *, running: bool) -> None:
        self.state = "running" if running else "stopped"
        self.starts: list[dict[str, str]] = []
        self.discarded: list[dict[str, str]] = []
        self.stop_fails: BaseException | None = None

    def inspect(self, _record: object) -> SimpleNamespace:
        return SimpleNamespace(state=self.state)

    def stop(self, _record: object, _seconds: int) -> None:
        self.state = "stopped"
        if self.stop_fails is not None:
            raise self.stop_fails

    def discard_volumes(self, _name: str, _state: object, volumes: dict[str, str]) -> None:
        self.discarded.append(dict(volumes))


@dataclass(frozen=True)
class Spec:
    """What the switch reads of a start."""

    volumes: dict[str, str]
    plan: Any


@pytest.fixture
def switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Box, Any], None]:
    """Runs the switch with that box; `settle` is what is done once it is stopped."""

    def run(box: Box, settle: Callable[[], None]) -> None:
        cli: Any = SimpleNamespace(
            find_record=SimpleNamespace, state=lambda: BoxState(tmp_path / "box"), out=Output()
        )

        def begin(_cli: object, _engine: object, spec: Spec) -> SimpleNamespace:
            box.state = "running"
            box.starts.append(dict(spec.volumes))
            started = Generation(number=len(box.starts), volumes=spec.volumes)
            GenerationStore(cli.state()).save(started, current=True)
            return SimpleNamespace()

        def compare(_record: object) -> None:
            raise AgentboxError("it does not run on the restored state: beads")

        monkeypatch.setattr(stages, "_start", begin)
        monkeypatch.setattr(stages, "boot_lines", lambda _engine, _record: ["a line"])
        shot: Any = SimpleNamespace(volumes=NEW, name="box")
        engine: Any = box
        spec: Any = Spec(OLD, SimpleNamespace(resources=SimpleNamespace(stop_seconds=1)))
        change = stages.NewVolumes(doing="restore s1", shot=shot, made=NEW, has_present=True)
        stages.switch(cli, engine, spec, change, settle, compare)

    return run


def failing(error: BaseException) -> Callable[[], None]:
    def settle() -> None:
        raise error

    return settle


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KeyError("x")])
def test_any_end_of_the_command_starts_the_old_state(
    switch: Callable[[Box, Any], None], error: BaseException
) -> None:
    """Ctrl-C and an error of the program itself go on after the box runs again."""
    box = Box(running=True)
    with pytest.raises(type(error)):
        switch(box, failing(error))
    assert (box.state, box.starts) == ("running", [OLD])


def test_a_full_disk_starts_the_old_state(switch: Callable[[Box, Any], None]) -> None:
    """It is reported as a failed restore."""
    box = Box(running=True)
    with pytest.raises(AgentboxError, match=r"cannot restore s1: .*No space left") as caught:
        switch(box, failing(OSError(28, "No space left on device")))
    assert caught.value.exit_code == ExitCode.ENGINE
    assert (box.state, box.starts) == ("running", [OLD])


def test_a_stop_that_fails_half_way_starts_the_old_state(
    switch: Callable[[Box, Any], None],
) -> None:
    """The engine may have stopped some of it."""
    box = Box(running=True)
    box.stop_fails = AgentboxError("cannot stop box: the engine is gone")
    with pytest.raises(AgentboxError, match="the engine is gone") as caught:
        switch(box, failing(AssertionError("not reached")))
    assert "The old state runs again." in caught.value.hint
    assert (box.state, box.starts) == ("running", [OLD])


def test_a_box_on_another_state_than_the_restored_gives_way_to_the_old(
    switch: Callable[[Box, Any], None],
) -> None:
    """It started and is ready, and does not have what was restored."""
    box = Box(running=True)
    with pytest.raises(AgentboxError, match="cannot restore s1: it does not run on") as caught:
        switch(box, lambda *_arguments: "")
    assert caught.value.exit_code == ExitCode.ENGINE
    assert (box.state, box.starts) == ("running", [NEW, OLD])


def test_a_box_that_was_stopped_stays_so(switch: Callable[[Box, Any], None]) -> None:
    """What was made for it goes."""
    box = Box(running=False)
    with pytest.raises(KeyboardInterrupt):
        switch(box, failing(KeyboardInterrupt()))
    assert (box.state, box.starts, box.discarded) == ("stopped", [], [NEW])


@pytest.mark.parametrize(
    ("answer", "kept"), [('{"restored":null}', ""), ('{"restored":"why"}', "why")]
)
def test_the_answer_of_an_earlier_release_is_understood(answer: str, kept: str) -> None:
    """The program is that of the box's image, which may be older than the host: it said null."""
    engine: Any = SimpleNamespace(run_once=lambda _shot, _doing: answer)
    state: Any = None
    shot = OneShot(name="box", state=state, module="m", image="", volumes={}, seconds=1)
    assert new_state.settle(engine, shot, "s1", {}) == kept
