"""The timeline of a boot from its log alone: for a box that ended, or whose API does not answer.

Programs have no spawn time in the log: supervisord starts them all at once, so the start of the
seal is used.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentbox.box.supervision.boot_timeline import BootFailure, BootTimeline, PhaseSpan, ProgramSpan
from agentbox.core import clock

Event = Mapping[str, Any]


def timeline_from_events(events: Iterable[Event]) -> BootTimeline | None:
    """The timeline of the last boot in the log; None without a boot. Times count from
    `BootstrapStarted`.
    """
    boot_events = _last_boot(list(events))
    if not boot_events:
        return None
    first = boot_events[0]
    begin = _ms(first)
    sealed = _find(boot_events, "BootstrapCompleted")
    starting = _find(boot_events, "SupervisorStarting")
    return BootTimeline(
        boot_id=str(first["boot_id"]),
        started_at=str(first["time"]),
        plan_digest=str(first.get("plan_digest", "")),
        previous_shutdown=str(first.get("previous_shutdown", "")),
        phases=_phases(boot_events, begin),
        programs=_programs(boot_events, begin),
        exec_ms=_ms(starting) - begin if starting else None,
        sealed_ms=_ms(sealed) - begin if sealed else None,
        failure=_failure(boot_events),
    )


def _last_boot(events: Sequence[Event]) -> list[Event]:
    started = [event for event in events if event.get("event") == "BootstrapStarted"]
    if not started:
        return []
    return [event for event in events if event.get("boot_id") == started[-1]["boot_id"]]


def _phases(events: Sequence[Event], begin: float) -> tuple[PhaseSpan, ...]:
    """The phases in the order in which they ran: event times have a resolution of 1 ms, which could
    swap short phases.
    """
    spans: list[PhaseSpan] = []
    start = 0.0
    for event in events:
        if event["event"] == "PhaseCompleted" and event["phase"] != "seal":
            start = max(start, round(_ms(event) - begin - event["ms"], 1))
            spans.append(PhaseSpan(event["phase"], start, event["ms"], event["budget_ms"]))
    return tuple(spans)


def _programs(events: Sequence[Event], begin: float) -> tuple[ProgramSpan, ...]:
    seal = _find(events, "BootstrapSealStarted")
    if seal is None:
        return ()
    ready = {
        event["program"]: round(_ms(event) - begin, 1)
        for event in events
        if event["event"] == "WaitingForProgram" and event["status"] in ("READY", "DONE")
    }
    spawned = round(_ms(seal) - begin, 1)
    return tuple(
        ProgramSpan(name, True, spawned, ready.get(name)) for name in seal["required_programs"]
    )


def _failure(events: Sequence[Event]) -> BootFailure | None:
    failed = _find(events, "BootstrapFailed")
    if failed:
        return BootFailure(str(failed["phase"]), str(failed["reason"]))
    timeout = _find(events, "BootstrapSealTimeout")
    return (
        BootFailure("seal", f"timed out waiting for {', '.join(timeout['waiting_for'])}")
        if timeout
        else None
    )


def _find(events: Sequence[Event], name: str) -> Event | None:
    return next((event for event in events if event["event"] == name), None)


def _ms(event: Event) -> float:
    return clock.from_wire(event["time"]).timestamp() * 1000
