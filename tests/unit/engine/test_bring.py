"""Choosing the smallest action that a changed manifest requires."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from support.plans import plan_of

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.base import BoxStatus, StartSpec
from agentbox.host.engines.reconcile import check, reconcile, required_action
from agentbox.host.engines.state import BoxRecord, BoxState

PLAN = plan_of()


@dataclass
class Noted:
    """An engine that runs nothing and records the calls; only the decision is tested."""

    name: str = "docker"
    running: BoxStatus = field(default_factory=lambda: BoxStatus("running"))
    secrets_same: bool = True
    fails: bool = False
    told: tuple[str, ...] = ()

    def inspect(self, record: BoxRecord) -> BoxStatus:
        return self.running

    def secrets_match(self, start: StartSpec) -> bool:
        return self.secrets_same

    def check(self, start: StartSpec) -> None:
        self.told += ("check",)

    def start(self, start: StartSpec) -> BoxRecord:
        return self._did("recreate" if start.recreate else "start", start)

    def store_files(self, start: StartSpec, folder: Path) -> None:
        """Nothing was rendered."""

    def refresh(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        return self._did("refresh", start)

    def rewrite(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        return self._did("rewrite", start)

    def stop(self, record: BoxRecord, seconds: int) -> None:
        self.told += ("stop",)
        self.running = BoxStatus("exited")

    def logs(
        self, record: BoxRecord, *, follow: bool, lines: int | None, since: str | None
    ) -> Iterator[str]:
        assert self.running.state == "exited"
        ended = {
            "event": "ShutdownCompleted",
            "drained_ms": 300,
            "tasks_ended": ["task-1", "task-2"],
        }
        yield json.dumps({"event": "BootstrapStarted"})
        yield json.dumps(ended)

    def _did(self, what: str, start: StartSpec) -> BoxRecord:
        self.told += (what,)
        if self.fails:
            raise AgentboxError("cannot", exit_code=ExitCode.ENGINE)
        return record_of(start)


def record_of(start: StartSpec) -> BoxRecord:
    return BoxRecord(
        engine="docker",
        name=start.plan.name,
        api_url=start.api_url,
        apply=dict(start.plan.apply),
        made_of=start.made_of,
    )


def start_of(folder: Path, **changes: str) -> StartSpec:
    """A start whose plan differs in these keys, each by its class."""
    apply = {**PLAN.apply, **{key: f"{kind} changed" for key, kind in changes.items()}}
    return StartSpec(
        plan=replace(PLAN, apply=apply), manifest=b"", state=BoxState(folder / "b"), made_of="m"
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "nothing"),
        ({"k": "live"}, "apply"),
        ({"k": "live", "l": "boot"}, "boot"),
        ({"k": "boot", "l": "recreate"}, "recreate"),
        ({"k": "rebuild"}, "recreate"),
    ],
)
def test_the_most_demanding_key_decides(
    tmp_path: Path, changes: dict[str, str], expected: str
) -> None:
    """One key of each class on a running box; the result names the keys."""
    last = record_of(start_of(tmp_path))
    found = required_action(Noted(), start_of(tmp_path, **changes), last)
    assert found.kind == expected
    assert not changes or max(changes) in found.reason


@pytest.mark.parametrize(
    ("state", "expected"),
    [("absent", "start"), ("exited", "start"), ("restarting", "recreate"), ("running", "nothing")],
)
def test_what_runs_decides_too(tmp_path: Path, state: str, expected: str) -> None:
    """The state of the box decides if the manifest is unchanged."""
    start = start_of(tmp_path)
    assert (
        required_action(Noted(running=BoxStatus(state)), start, record_of(start)).kind == expected
    )


def test_what_is_not_known_is_made_anew(tmp_path: Path) -> None:
    """An unknown state recreates the box: no record, an unfinished change, another image, another
    secret.
    """
    start = start_of(tmp_path)
    last = record_of(start)
    assert required_action(Noted(), start, None).kind == "start"
    assert required_action(Noted(), start, replace(last, settled=False)).kind == "recreate"
    assert required_action(Noted(), start, replace(last, made_of="other")).kind == "recreate"
    assert required_action(Noted(secrets_same=False), start, last).kind == "boot"


def test_a_change_that_fails_stays_unsettled(tmp_path: Path) -> None:
    """The next `up` knows that the running state is unknown."""
    start = start_of(tmp_path, k="boot")
    start.state.make()
    last = record_of(start_of(tmp_path))
    engine = Noted(fails=True)
    with pytest.raises(AgentboxError):
        reconcile(engine, start, last, apply_live=lambda _record: True, failed_boot=False)
    kept = start.state.record()
    assert kept is not None
    assert not kept.settled
    engine.fails = False
    brought = reconcile(engine, start, kept, apply_live=lambda _record: True, failed_boot=False)
    assert engine.told == ("stop", "refresh", "recreate")
    assert start.state.record() == brought.record


def test_live_keys_that_the_box_refuses_boot_it(tmp_path: Path) -> None:
    """Live keys are applied in place if the box accepts them, else the box is booted again."""
    start = start_of(tmp_path, k="live")
    start.state.make()
    for agrees, told in ((True, ("rewrite",)), (False, ("rewrite", "stop", "refresh"))):
        engine = Noted()
        reconcile(
            engine,
            start,
            record_of(start_of(tmp_path)),
            apply_live=lambda _record, a=agrees: a,
            failed_boot=False,
        )
        assert engine.told == told


def test_a_failed_boot_is_tried_again(tmp_path: Path) -> None:
    """Retried although nothing changed: it would never become ready by itself."""
    start = start_of(tmp_path)
    start.state.make()
    engine = Noted()
    brought = reconcile(
        engine, start, record_of(start), apply_live=lambda _record: True, failed_boot=True
    )
    assert engine.told == ("stop", "refresh")
    assert "its boot had failed" in brought.summary


@pytest.mark.parametrize(("kind", "did"), [("recreate", "recreated"), ("boot", "booted again")])
def test_who_brings_a_box_down_says_which_tasks_ended(tmp_path: Path, kind: str, did: str) -> None:
    """The old box is stopped first, while its log exists; a box that is not running ended no
    tasks.
    """
    start, ended = start_of(tmp_path, k=kind), "clean, drained in 0.3 s, ended task-1, task-2"
    start.state.make()
    engine = Noted()
    last = record_of(start_of(tmp_path))
    brought = reconcile(engine, start, last, apply_live=lambda _record: True, failed_boot=False)
    assert engine.told[0] == "stop"
    assert brought.summary == f"{did} (k); stopped before: {ended}"
    again = reconcile(
        engine,
        start,
        replace(last, settled=False),
        apply_live=lambda _record: True,
        failed_boot=False,
    )
    assert again.summary == "recreated (an earlier change was not completed)"


def test_another_engine_is_refused(tmp_path: Path) -> None:
    """Exit 7 before any call to the new engine."""
    start = start_of(tmp_path)
    engine = Noted(name="process")
    with pytest.raises(AgentboxError, match="it was started with docker") as caught:
        check(engine, start, record_of(start))
    assert caught.value.exit_code is ExitCode.BUSY
    assert engine.told == ()
