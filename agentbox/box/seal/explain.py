"""`boot explain`: turns the record of one boot into rows, bars, the critical chain and one
sentence. Pure functions.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agentbox.box.supervision.boot_timeline import BootTimeline, PhaseSpan, ProgramSpan
from agentbox.plan.names import BOOTSTRAP

BAR_WIDTH = 32


@dataclass(frozen=True)
class Row:
    """One phase or program. A program without `end_ms` was never ready. `critical`: the seal waited
    for it.
    """

    kind: Literal["phase", "program"]
    name: str
    start_ms: float
    end_ms: float | None
    budget_ms: int | None
    critical: bool
    bar: str

    @property
    def slow(self) -> bool:
        """True when the budget was exceeded."""
        return (
            self.budget_ms is not None
            and self.end_ms is not None
            and self.end_ms - self.start_ms > self.budget_ms
        )


@dataclass(frozen=True)
class CriticalChainSection:
    """One section of the critical chain; each starts where the previous one ends."""

    name: str
    start_ms: float
    end_ms: float

    @property
    def ms(self) -> float:
        return round(self.end_ms - self.start_ms, 1)


@dataclass(frozen=True)
class Explanation:
    boot_id: str
    rows: tuple[Row, ...]
    chain: tuple[CriticalChainSection, ...]
    sentence: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def explain(timeline: BootTimeline) -> Explanation:
    """The explanation, with rows ordered by start time."""
    last = _last_ready(timeline)
    chain = _chain(timeline, last)
    total = timeline.sealed_ms or _latest(timeline)
    critical = {last.name} if last else set()
    rows = [
        *(_phase_row(span, total, _is_critical(span, last)) for span in timeline.phases),
        *(
            _program_row(span, total, span.name in critical)
            for span in timeline.programs
            if span.spawn_ms is not None
        ),
    ]
    rows.sort(key=lambda row: (row.start_ms, row.kind == "program"))
    return Explanation(timeline.boot_id, tuple(rows), chain, _summary(timeline, chain, last))


def _last_ready(timeline: BootTimeline) -> ProgramSpan | None:
    """The required program that was ready last, or one that never was."""
    required = [span for span in timeline.programs if span.required and span.spawn_ms is not None]
    return max(
        required,
        key=lambda span: float("inf") if span.ready_ms is None else span.ready_ms,
        default=None,
    )


def _is_critical(span: PhaseSpan, last: ProgramSpan | None) -> bool:
    return not span.id.startswith("B") or (last is not None and last.name == BOOTSTRAP)


def _chain(timeline: BootTimeline, last: ProgramSpan | None) -> tuple[CriticalChainSection, ...]:
    """From the start of PID 1 to the seal: engine and interpreter, phases of Stage A, supervisord,
    the last program, the seal.
    """
    stage_a = [span for span in timeline.phases if not span.id.startswith("B")]
    milestones: list[tuple[str, float | None]] = []
    if stage_a:
        milestones.append(("engine and interpreter start", stage_a[0].start_ms))
        milestones += [(f"phase {span.id}", span.start_ms + span.ms) for span in stage_a]
    if last is not None:
        milestones += [
            ("supervisord, to the first spawn", last.spawn_ms),
            (f"{last.name}, spawn to ready", last.ready_ms),
        ]
    milestones.append(("seal", timeline.sealed_ms))
    return _links(milestones)


def _links(milestones: Sequence[tuple[str, float | None]]) -> tuple[CriticalChainSection, ...]:
    """Process start times have a resolution of 10 ms, so an end is never earlier than the previous
    one.
    """
    links, start = [], 0.0
    for name, end in milestones:
        if end is None:
            break
        end = max(end, start)
        links.append(CriticalChainSection(name, round(start, 1), round(end, 1)))
        start = end
    return tuple(links)


def _summary(
    timeline: BootTimeline, chain: Sequence[CriticalChainSection], last: ProgramSpan | None
) -> str:
    if timeline.failure is not None:
        return f"Not sealed: {timeline.failure.reason}."
    if timeline.sealed_ms is None:
        waiting = f"; waiting for {last.name}" if last and last.ready_ms is None else ""
        return f"Not sealed yet{waiting}."
    longest = max(chain, key=lambda link: link.ms)
    slow = [
        f"phase {span.id} took {span.ms:.0f} ms of {span.budget_ms}"
        for span in timeline.phases
        if _slow(span)
    ]
    overruns = f" Over budget: {', '.join(slow)}." if slow else ""
    last_program = f"waited for {last.name} last; " if last else ""
    return (
        f"Sealed after {_seconds(timeline.sealed_ms)}: it {last_program}the longest part was "
        f"{longest.name} ({_seconds(longest.ms)}).{overruns}"
    )


def _slow(span: PhaseSpan) -> bool:
    return span.ms > span.budget_ms


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.2f} s"


def _phase_row(span: PhaseSpan, total: float, critical: bool) -> Row:
    end = round(span.start_ms + span.ms, 1)
    return Row(
        "phase",
        span.id,
        span.start_ms,
        end,
        span.budget_ms,
        critical,
        bar(span.start_ms, end, total),
    )


def _program_row(span: ProgramSpan, total: float, critical: bool) -> Row:
    start = span.spawn_ms or 0.0
    end = span.ready_ms
    return Row(
        "program",
        span.name,
        start,
        end,
        None,
        critical,
        bar(start, total if end is None else end, total),
    )


def bar(start: float, end: float, total: float) -> str:
    """`BAR_WIDTH` columns for the whole boot; each entry has at least one."""
    if total <= 0:
        return " " * BAR_WIDTH
    first = min(int(start / total * BAR_WIDTH), BAR_WIDTH - 1)
    length = max(1, min(round((end - start) / total * BAR_WIDTH), BAR_WIDTH - first))
    return f"{'':{first}}{'#' * length}".ljust(BAR_WIDTH)


def _latest(timeline: BootTimeline) -> float:
    ends = [span.start_ms + span.ms for span in timeline.phases]
    ends += [span.ready_ms for span in timeline.programs if span.ready_ms is not None]
    return max(ends, default=0.0)
