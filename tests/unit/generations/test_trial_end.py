"""How a trial ends that nobody finished, where no box can start: nothing blocks later commands."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import Paths
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.interrupted import finish_interrupted, left_trial
from agentbox.host.cli.stages.rollback import choose_target
from agentbox.host.cli.stages.trial_end import finish_trial, return_from_trial
from agentbox.host.engines.locations import process_root
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.state import BoxRecord
from agentbox.host.generations.record import BAD, GOOD, Generation
from agentbox.host.generations.store import GenerationStore
from agentbox.host.generations.stores import BoxStores

NAME = f"agentbox-unit-trial-{os.getpid()}"
NOWHERE = "/nowhere/agentbox"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CliContext]:
    """Generation 1 was good and 2 is current; the environments of both are gone."""
    monkeypatch.setenv("AGENTBOX_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    manifest = tmp_path / "agentbox.toml"
    manifest.write_text(f'[meta]\nschema_version = 1\nname = "{NAME}"\n')
    made = CliContext(manifest_argument=manifest, quiet=True)
    root = process_root(NAME, made.state())
    made.state().make()
    store = GenerationStore(made.state())
    for number in (1, 2):
        record = BoxRecord(
            engine="process", name=NAME, api_url="http://127.0.0.1:1", root=str(root)
        )
        store.save(
            Generation(
                number=number,
                engine="process",
                python=NOWHERE,
                verdict=GOOD,
                copies=[{"name": "beads/beads.db", "size": 1, "sha256": ""}],
                box=asdict(record),
            ),
            current=True,
        )
        made.state().save_record(record)
    yield made
    shutil.rmtree(root, ignore_errors=True)


def enter(cli: CliContext, step: str) -> GenerationStore:
    store = GenerationStore(cli.state())
    trial = {"number": 2, "previous": 1, "step": step, "copies_of": 2, "trial_seconds": 1}
    store.set_trial({**trial, "reason": "it is slow"})
    return store


@pytest.mark.parametrize("step", ["prepared", "starting", "returning", "rollback"])
def test_a_return_that_cannot_be_done_blocks_nothing(cli: CliContext, step: str) -> None:
    """Exit 6 once, with what to run; the trial has ended, and the copies are still known."""
    store = enter(cli, step)
    with pytest.raises(AgentboxError, match="the box is down") as caught:
        finish_trial(cli)
    assert caught.value.exit_code is ExitCode.ENGINE
    assert "./agentbox.sh up" in caught.value.hint
    assert store.trial() == {}
    assert finish_trial(cli) == ""
    assert store.get(2).copies
    assert (store.get(2).verdict == BAD) == (step in {"starting", "returning"})
    record = cli.state().record()
    assert record is not None
    assert not record.settled


def test_a_return_falls_back_to_the_other_release(cli: CliContext) -> None:
    """The image or environment of one may be gone; nothing but a return falls back."""
    store = GenerationStore(cli.state())
    gone = store.get(1)
    here = Generation(number=3, engine="process", python=sys.prefix)
    engine, held = engine_by_name("process"), Paths(process_root(NAME, cli.state())).held
    BoxStores(engine, cli.state(), NAME, gone, here).hold(2)
    assert held.exists()
    stores = BoxStores(engine, cli.state(), NAME, gone, gone, here)
    stores.unhold()
    assert not held.exists()
    with pytest.raises(AgentboxError, match="is missing"):
        stores.hold(2)


def test_one_that_was_left_is_only_shown(cli: CliContext) -> None:
    """By `status`; `upgrade` refuses, `up` keeps it, `rollback` returns to the one before."""
    store = enter(cli, "left")
    finish_interrupted(cli)
    assert left_trial(cli)["reason"] == "it is slow"
    with pytest.raises(AgentboxError, match="left as it is, held: it is slow") as caught:
        finish_trial(cli)
    assert caught.value.exit_code is ExitCode.BUSY
    assert "is kept" in finish_trial(cli, keep=True)
    assert store.trial() == {}
    enter(cli, "left")
    with pytest.raises(AgentboxError, match="go back to generation 1"):
        return_from_trial(cli)
    assert store.get(2).verdict == BAD


def test_status_does_not_hide_an_error(cli: CliContext) -> None:
    """A command that is alive is left alone; a damaged index is an error with a hint."""
    store = enter(cli, "returning")
    with cli.state().exclusive_lock():
        finish_interrupted(cli)
    assert store.trial()
    (store.directory / "index.json").write_text("{")
    with pytest.raises(AgentboxError, match="is damaged"):
        finish_interrupted(cli)


def test_one_that_does_not_run_can_be_started_again(cli: CliContext) -> None:
    """`rollback` prefers it to an earlier one; while it runs, the earlier one is meant."""
    store = GenerationStore(cli.state())
    assert choose_target(store, None, running=False)[0].number == 2
    assert choose_target(store, 2, running=False)[0].number == 2
    assert choose_target(store, None, running=True)[0].number == 1
    with pytest.raises(AgentboxError, match="it is the one that runs"):
        choose_target(store, 2, running=True)
