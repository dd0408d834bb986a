"""The records of generations on the host."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.stages.rollback import choose_target
from agentbox.host.engines.state import BoxState
from agentbox.host.generations.pruning import outdated, prune, require_removable
from agentbox.host.generations.record import BAD, GOOD, SUPERSEDED, TRIAL, Generation
from agentbox.host.generations.recording import confirm, mark_bad, start_failed
from agentbox.host.generations.store import GenerationStore
from agentbox.host.generations.trial_steps import end_trial


@pytest.fixture
def store(tmp_path: Path) -> GenerationStore:
    """Six generations, the last one runs."""
    made = GenerationStore(BoxState(tmp_path / "b"))
    made.state.make()
    for number in range(1, 7):
        made.save(Generation(number=number, key=str(number)), current=True)
        made.folder(number).mkdir()
        confirm(made, number, {"beads/beads.db": number})
    return made


def numbers(store: GenerationStore) -> list[int]:
    return [row.number for row in store.rows()]


def test_one_is_good_and_those_before_it_are_superseded(store: GenerationStore) -> None:
    """One marked bad keeps its reason and the last 20 lines of its log."""
    assert [row.verdict for row in store.rows()] == [SUPERSEDED] * 5 + [GOOD]
    current = store.current()
    assert current is not None
    assert (current.number, current.migrations) == (6, {"beads/beads.db": 6})
    mark_bad(store, 6, "why", [str(line) for line in range(50)])
    bad = store.get(6)
    assert (bad.verdict, bad.reason, len(bad.log)) == (BAD, "why", 20)


def test_the_newest_the_pinned_and_the_running_one_are_kept(store: GenerationStore) -> None:
    """The others go with their folders and their copies."""
    store.save(replace(store.get(3), copies=[{"name": "beads/beads.db"}]))
    discarded: list[Generation] = []
    store.save(replace(store.get(1), pinned=True))
    store.save(store.get(2), current=True)
    assert prune(store, 2, discarded.append) == [3, 4]
    assert [row.number for row in discarded] == [3]
    assert numbers(store) == [1, 2, 5, 6]
    assert not store.folder(3).exists()


def test_bad_ones_do_not_push_out_what_they_went_back_to(store: GenerationStore) -> None:
    """Each kind has its newest ones kept."""
    for number in range(7, 11):
        store.save(Generation(number=number, key=str(number)))
        mark_bad(store, number, "why", [])
    store.save(store.get(6), current=True)
    assert [row.number for row in outdated(store, 2)] == [1, 2, 3, 4, 7, 8]


def test_one_in_trial_is_kept(store: GenerationStore) -> None:
    """And the one that it would go back to."""
    store.set_trial({"number": 6, "previous": 1, "step": "starting"})
    assert 1 not in [row.number for row in outdated(store, 2)]


def test_the_one_that_ran_before_is_kept(store: GenerationStore) -> None:
    """After upgrades that were left again it is older than the newest."""
    store.save(replace(store.get(6), before=1))
    assert [row.number for row in outdated(store, 2)] == [2, 3, 4]


def test_the_last_record_of_a_volume_is_kept(store: GenerationStore) -> None:
    """Those before a restore have other data; without a record nobody would know whose it is."""
    for number in (5, 6):
        store.save(replace(store.get(number), volumes={"state": "state-g5"}))
    assert [row.number for row in outdated(store, 2)] == [1, 2, 3]


@pytest.mark.parametrize("number", [2, 6])
def test_a_pinned_or_running_one_is_not_removed(store: GenerationStore, number: int) -> None:
    """Exit 2."""
    store.save(replace(store.get(2), pinned=True))
    with pytest.raises(AgentboxError) as caught:
        require_removable(store, number)
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_damaged_index_is_an_error(store: GenerationStore) -> None:
    """It says which volumes have the data: it is never replaced by an empty one."""
    (store.directory / "index.json").write_text("{")
    with pytest.raises(AgentboxError, match="is damaged"):
        store.volumes()
    with pytest.raises(AgentboxError, match="is damaged"):
        store.save(Generation(number=7))


def test_the_current_one_always_has_a_record(store: GenerationStore) -> None:
    """Without it the next start would take the volumes of the first one."""
    rows = [row for row in store.rows() if row.number != 6]
    with pytest.raises(AgentboxError, match="would have no record"):
        store.replace_all(rows, 6, {})
    assert numbers(store) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("step", "verdict"),
    [
        ("prepared", None),
        ("starting", BAD),
        ("returning", BAD),
        ("left", BAD),
        ("confirmed", GOOD),
        ("rollback", TRIAL),
    ],
)
def test_a_trial_ends_with_the_box(store: GenerationStore, step: str, verdict: str | None) -> None:
    """`down`: one that never started has no record, one that was not found good is bad."""
    store.save(Generation(number=7))
    store.set_trial({"number": 7, "previous": 6, "step": step})
    end_trial(store)
    assert store.trial() == {}
    assert {row.number: row.verdict for row in store.rows()}.get(7) == verdict
    assert store.get(6).verdict == GOOD


def test_a_start_that_fails_is_bad_and_names_the_way_back(store: GenerationStore) -> None:
    """One that ran before keeps its verdict; without one that ran there is no way back."""
    error = AgentboxError("cannot start the box: why\nlog", "Fix it.")
    store.save(Generation(number=7))
    assert "rollback" not in start_failed(store.state, 7, error).hint
    assert (store.get(7).verdict, store.get(7).reason) == (BAD, "cannot start the box: why")
    store.save(replace(store.get(6), box={"name": "b"}))
    assert start_failed(store.state, 6, error).hint == (
        "Fix it. To go back: ./agentbox.sh rollback"
    )
    assert store.get(6).verdict == GOOD


def test_each_engine_has_volumes_of_its_own(store: GenerationStore) -> None:
    """A box that goes from one engine to another and back continues with the data of each; the
    generation that says which they are is kept."""
    restored = {"state": "state-g7"}
    store.save(Generation(number=7, engine="docker", volumes=restored), current=True)
    store.save(Generation(number=8, engine="process"), current=True)
    assert store.volumes("process") == {}
    assert store.volumes("docker") == restored
    for number in (9, 10, 11):
        store.save(Generation(number=number, engine="process", box={"name": "b"}), current=True)
    assert 7 not in [row.number for row in outdated(store, 1)]
    with pytest.raises(AgentboxError, match="it ran with docker"):
        choose_target(store, 7, running=True)
    assert choose_target(store, None, running=True)[0].number != 7


def test_a_rollback_goes_to_the_one_that_ran_before(store: GenerationStore) -> None:
    """After 5 was left for 3, a new one was made in place of 3: that is the way back, not 6. One
    that is no longer kept is passed over.
    """
    box = {"name": "b"}
    for row in store.rows():
        store.save(replace(row, box=box, before=row.number - 1))
    store.save(Generation(number=7, before=3, box=box), current=True)
    assert choose_target(store, None, running=True)[0].number == 3
    store.save(replace(store.get(3), verdict=BAD))
    assert choose_target(store, None, running=True)[0].number == 2
    store.remove(3)
    assert choose_target(store, None, running=True)[0].number == 6
