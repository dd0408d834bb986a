"""`boot explain` as a pure function, and the record rebuilt from a log."""

import itertools
import json
from dataclasses import replace

from support.prefix_box import PrefixBox, default_programs, make_plan

from agentbox.box.seal.event_timeline import timeline_from_events
from agentbox.box.seal.explain import BAR_WIDTH, bar, explain
from agentbox.box.supervision.boot_timeline import (
    BootFailure,
    BootTimeline,
    PhaseSpan,
    ProgramSpan,
    boot_report,
    boot_timeline,
)

GOOD = BootTimeline(
    boot_id="one",
    started_at="2026-01-01T00:00:00.000Z",
    plan_digest="sha256:p",
    previous_shutdown="clean",
    phases=(PhaseSpan("0", 60, 10, 60), PhaseSpan("5", 70, 230, 200), PhaseSpan("B6", 500, 40, 80)),
    programs=(
        ProgramSpan("bootstrap", True, 400, 560),
        ProgramSpan("management-api", True, 400, 900),
        ProgramSpan("extra", False, 400, None),
    ),
    exec_ms=300,
    sealed_ms=1000,
)


def test_the_chain_goes_from_pid_1_to_the_seal_without_a_gap() -> None:
    """The chain of times from PID 1 to the seal has no gap."""
    chain = explain(GOOD).chain
    assert [link.name for link in chain] == [
        "engine and interpreter start",
        "phase 0",
        "phase 5",
        "supervisord, to the first spawn",
        "management-api, spawn to ready",
        "seal",
    ]
    assert chain[0].start_ms == 0
    assert chain[-1].end_ms == 1000
    assert all(left.end_ms == right.start_ms for left, right in itertools.pairwise(chain))


def test_the_sentence_names_the_longest_part_and_the_budgets_that_were_missed() -> None:
    """The sentence names the longest part and the budgets that were missed."""
    sentence = explain(GOOD).sentence
    assert "waited for management-api last" in sentence
    assert "the longest part was management-api, spawn to ready (0.50 s)" in sentence
    assert "phase 5 took 230 ms of 200" in sentence


def test_rows_are_in_the_order_of_their_start_and_mark_the_critical_chain() -> None:
    """Rows are in the order of their start and mark the critical chain."""
    rows = explain(GOOD).rows
    assert [row.name for row in rows] == ["0", "5", "bootstrap", "management-api", "extra", "B6"]
    assert {row.name for row in rows if row.critical} == {"0", "5", "management-api"}
    assert {row.name for row in rows if row.slow} == {"5"}


def test_stage_b_is_critical_when_the_seal_waited_for_it() -> None:
    """Stage b is critical when the seal waited for it."""
    last = (replace(GOOD.programs[0], ready_ms=950.0), GOOD.programs[1])
    assert next(
        row for row in explain(replace(GOOD, programs=last)).rows if row.name == "B6"
    ).critical


def test_a_program_that_never_was_ready_is_what_the_seal_waits_for() -> None:
    """A program that never was ready is what the seal waits for."""
    stuck = replace(
        GOOD, sealed_ms=None, programs=(replace(GOOD.programs[0], ready_ms=None), GOOD.programs[1])
    )
    assert explain(stuck).sentence == "Not sealed yet; waiting for bootstrap."


def test_a_failure_is_told_in_its_own_words() -> None:
    """A failure is reported in its own words."""
    failed = replace(GOOD, sealed_ms=None, failure=BootFailure("seal", "required program x ended"))
    assert explain(failed).sentence == "Not sealed: required program x ended."


def test_bars_fill_the_width_and_never_vanish() -> None:
    """Bars fill the width and never vanish."""
    assert bar(0, 100, 100) == "#" * BAR_WIDTH
    assert bar(50, 50, 100).strip() == "#"
    assert bar(100, 100, 100).endswith("#")
    assert len(bar(99.99, 100, 100)) == BAR_WIDTH
    assert bar(0, 0, 0).strip() == ""


def test_a_boot_without_anything_is_explained_too() -> None:
    """A boot without anything is explained too."""
    empty = replace(GOOD, phases=(), programs=(), exec_ms=None, sealed_ms=None)
    assert explain(empty).rows == ()


def test_a_real_boot_is_explained_from_its_record_and_from_its_log(
    box: PrefixBox, port: int
) -> None:
    """A real boot is explained from its record and from its log."""
    box.install(make_plan(port, default_programs(port)))
    box.start()
    box.wait_for_event("BootstrapCompleted")
    box.wait_until(lambda: boot_timeline(box.paths))
    report = json.loads(json.dumps(boot_report(box.paths)))
    kept, told = BootTimeline.from_json(report["timeline"]), timeline_from_events(box.events())
    assert told is not None
    assert report["broken"] == []
    assert [boot["boot_id"] for boot in report["history"]] == [kept.boot_id] == [told.boot_id]
    assert [row.name for row in explain(kept).rows if row.kind == "phase"] == [
        row.name for row in explain(told).rows if row.kind == "phase"
    ]
    assert "Sealed after" in explain(kept).sentence
    assert "Sealed after" in explain(told).sentence
    assert boot_report(box.paths, "unknown")["timeline"] is None


def test_a_log_without_a_boot_tells_nothing() -> None:
    """A log without a boot explains nothing."""
    assert timeline_from_events([]) is None
    assert timeline_from_events([{"event": "SomethingElse", "boot_id": "x"}]) is None


def test_a_failed_stage_a_is_explained_from_the_log(box: PrefixBox, port: int) -> None:
    """A failed stage a is explained from the log."""
    box.install(
        make_plan(
            port, default_programs(port), writable_roots=("/run/agentbox", "/var/lib/agentbox/x/y")
        )
    )
    (box.paths.state / "x").write_text("in the way")
    box.start()
    assert box.wait(10) == 1
    told = timeline_from_events(box.events())
    assert told is not None
    assert "/var/lib/agentbox/x/y" in explain(told).sentence
