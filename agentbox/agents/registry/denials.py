"""Ledger of denials by processes of the box: exact counts, and events at a limited rate
(denial_rates.py).

Denials by the kernel are not counted: it does not report them.
"""

import asyncio
import contextlib
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.denial_classes import DenialClass, DenialClassifier
from agentbox.agents.registry.denial_rates import EVENT_SECONDS, DenialRate
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.contracts.agent_host.denials import DenialCount, DenialCounts
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.slot_errors import PermissionDenied, QuotaExceeded, SpawnError
from agentbox.core.visible_text import escape_invisible

LAYERS: Final = ("proxy", "gateway", "agent-api", "spawn", "reaper")
OTHER: Final = "other"
MAX_RULES = 64  # per layer; later ones count as `other`
MAX_NAMES = 32  # of agents; later ones count as `other`
MAX_SERIES = 190  # of (name, layer, rule, class); /metrics shows 200 per family
MAX_EVENTS = 64  # stored at once; the rest waits for the next batch and keeps counting
_RULE_PATTERN = re.compile(r"[a-z0-9]([a-z0-9_.:*/ -]{0,46}[a-z0-9*])?")
_MAX_DETAIL = 200  # characters
_DENYING_STAGES = (
    "profile",
    "cwd",
    "confinement",
)  # of a spawn; a missing program is not a denial

# Agent id ("" = no agent was created), session id, trace id, name, layer, rule, class.
DenialKey = tuple[str, str, str, str, str, str, DenialClass]
SaveEvents = Callable[[Sequence[AgentRecord], Sequence[LifecycleEvent]], Coroutine[Any, Any, None]]


@dataclass
class _Unreported:
    """Denials that no event contains yet. `detail` is that of the first."""

    profile: str
    generation: int
    count: int
    detail: str


class DenialLedger:
    """Used by one event loop. `entries` are the agents by id; `save` stores changed agents and
    events in one transaction."""

    def __init__(self, save: SaveEvents, entries: Mapping[str, AgentRecord]) -> None:
        self._save, self._entries = save, entries
        self._totals: dict[tuple[str, str, str, DenialClass], int] = {}
        self._classes = DenialClassifier()
        self._names: set[str] = set()
        self._rules: defaultdict[str, set[str]] = defaultdict(set)
        self._unreported: dict[DenialKey, _Unreported] = {}
        self._rates: dict[str, DenialRate] = {}  # by agent id
        self._ready: list[LifecycleEvent] = []
        self._reporter: asyncio.Task[None] | None = None
        self._flushing = False  # ignore the rates
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self.revision = secrets.randbits(
            40
        )  # grows with each denial; random start, so that it differs between processes

    def on_denied(
        self,
        agent_id: str,
        layer: str,
        rule: str,
        count: int = 1,
        detail: str = "",
        signature: str = "",
    ) -> None:
        """Count `count` denials of that agent. Unknown layers and rules beyond the limit count as
        `other`. So does an unknown agent, which gets no event. `detail` may contain text of an
        agent: it is truncated and escaped. Benign denials cause no event."""
        entry = self._entries.get(agent_id)
        layer, rule = self._bound_names(layer, rule)
        if entry is None:
            self._count(OTHER, layer, rule, "policy", count)
            return
        by_rule = entry.denials.setdefault(layer, {})
        by_rule[rule] = by_rule.get(rule, 0) + count
        for kind, number in self._classes.split(agent_id, (layer, rule, signature), count).items():
            name = self._count(entry.spec.name, layer, rule, kind, number)
            if kind == "benign":
                benign = entry.quiet.setdefault(layer, {})
                benign[rule] = benign.get(rule, 0) + number
            else:
                key = (agent_id, "", "", name, layer, rule, kind)
                self._enqueue(key, entry.spec.profile, entry.generation, number, detail)

    def discard(self, agent_id: str) -> None:
        """The agent has ended: report what no event contains yet and keep only its totals."""
        self._classes.discard(agent_id)
        if rate := self._rates.pop(agent_id, None):
            keys = [key for key in self._unreported if key[0] == agent_id]
            self._ready += self._pop_events(keys, rate, time.monotonic())
            self._wake.set()

    def on_spawn(
        self,
        spec: AgentSpec,
        error: BaseException | None,
        agent_id: str = "",
        session_id: str = "",
        trace_id: str = "",
    ) -> None:
        """Count a start that was denied by rule; other failures are ignored. `agent_id` is set if
        the agent exists, as at a restart; otherwise the event belongs to the parent, or to no
        agent, with session and trace of the caller."""
        rule = denying_rule(error)
        if not rule:
            return
        if agent_id in self._entries:
            self.on_denied(agent_id, "spawn", rule, 1, str(error))
            return
        layer, rule = self._bound_names("spawn", rule)
        parent = spec.parent_id if spec.parent_id in self._entries else None
        name = self._count(spec.name, layer, rule, "policy", 1)
        run_ids = ("", "") if parent else (session_id, trace_id)
        self._enqueue(
            (parent or "", *run_ids, name, layer, rule, "policy"), spec.profile, 0, 1, str(error)
        )

    def totals(self) -> DenialCounts:
        """Denials since this process started, by agent name, layer, rule and class."""
        rows = sorted(self._totals.items())
        counts = tuple(
            DenialCount(agent=name, layer=layer, rule=rule, count=count, denial_class=kind)
            for (name, layer, rule, kind), count in rows
        )
        return DenialCounts(revision=self.revision, totals=counts)

    async def wait_for_change(self) -> None:
        """Return after the next denial."""
        await self._changed.wait()

    async def flush(self) -> None:
        """Return once every denial so far is in an event."""
        self._flushing = True
        self._wake.set()
        while self._reporter is not None and not self._reporter.done():
            await asyncio.wait([self._reporter])
        self._flushing = False

    def _bound_names(self, layer: str, rule: str) -> tuple[str, str]:
        layer = layer if layer in LAYERS else OTHER
        rules = self._rules[layer]
        if rule in rules or (_RULE_PATTERN.fullmatch(rule) and len(rules) < MAX_RULES):
            rules.add(rule)
            return layer, rule
        return layer, OTHER

    def _count(self, name: str, layer: str, rule: str, kind: DenialClass, count: int) -> str:
        """Return the name under which it is counted."""
        if name not in self._names and len(self._names) >= MAX_NAMES:
            name = OTHER
        self._names.add(name)
        key = (name, layer, rule, kind)
        if key not in self._totals and len(self._totals) >= MAX_SERIES:
            key = (OTHER, layer, OTHER, kind)
        self._totals[key] = self._totals.get(key, 0) + count
        self.revision += 1
        self._changed.set()
        self._changed = asyncio.Event()
        return name

    def _enqueue(
        self, key: DenialKey, profile: str, generation: int, count: int, detail: str
    ) -> None:
        if pending := self._unreported.get(key):
            pending.count += count
            return
        self._unreported[key] = _Unreported(
            profile, generation, count, escape_invisible(detail[:_MAX_DETAIL])
        )
        if key[0]:
            now = time.monotonic()
            self._rates.setdefault(key[0], DenialRate(now)).on_denied(key[4:], now)
        self._wake.set()
        if self._reporter is None or self._reporter.done():
            self._reporter = asyncio.create_task(self._report(), name="denials")

    async def _report(self) -> None:
        """Send events as their rates allow; the sleep limits how often they are stored."""
        while self._unreported or self._ready:
            self._wake.clear()
            events = [*self._ready, *self._pop_due(time.monotonic())]
            self._ready = []
            if events:
                entries = {
                    item.agent_id: entry
                    for item in events
                    if (entry := self._entries.get(item.agent_id))
                }
                await self._save(tuple(entries.values()), events)
                await asyncio.sleep(EVENT_SECONDS)
            elif not self._flushing:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._delay(time.monotonic())):
                        await self._wake.wait()
        running = {
            agent_id
            for agent_id in self._rates
            if agent_id in self._entries and not self._entries[agent_id].over
        }
        self._rates = {
            agent_id: rate for agent_id, rate in self._rates.items() if agent_id in running
        }

    def _pop_due(self, now: float) -> list[LifecycleEvent]:
        """Take the events that are due, at most MAX_EVENTS."""
        due = [key for key in self._unreported if self._flushing or self._due_at(key, now) <= now][
            :MAX_EVENTS
        ]
        events = [_event(key, self._unreported.pop(key)) for key in due if not key[0]]
        by_agent: defaultdict[str, list[DenialKey]] = defaultdict(list)
        for key in due:
            if key[0]:
                by_agent[key[0]].append(key)
        for agent_id, keys in by_agent.items():
            events += self._pop_events(keys, self._rates[agent_id], now)
        return events

    def _delay(self, now: float) -> float:
        return max(EVENT_SECONDS, min(self._due_at(key, now) for key in self._unreported) - now)

    def _due_at(self, key: DenialKey, now: float) -> float:
        """Denials without an agent are due at once: each needs a request of its own."""
        return self._rates[key[0]].due(key[4:], now) if key[0] else now

    def _pop_events(
        self, keys: list[DenialKey], rate: DenialRate, now: float
    ) -> list[LifecycleEvent]:
        """One event per key of an agent, or one summary of all."""
        events: list[LifecycleEvent] = []
        while keys:
            batch = keys if rate.is_exhausted(now) else keys[:1]
            keys = keys[len(batch) :]
            events.append(_summary_event([(key, self._unreported.pop(key)) for key in batch]))
            rate.on_event([key[4:] for key in batch], now)
        return events


def denying_rule(error: BaseException | None) -> str:
    """The rule that denied a start; "" if none did."""
    if isinstance(error, QuotaExceeded):
        return str(error.members.get("limit", "limits"))
    if isinstance(error, PermissionDenied):
        return "rights"
    if isinstance(error, SpawnError) and error.members.get("stage") in _DENYING_STAGES:
        return str(error.members["stage"])
    return ""


def _event(key: DenialKey, unreported: _Unreported) -> LifecycleEvent:
    agent_id, session_id, trace_id, name, layer, rule, kind = key
    agent = {"name": name, "generation": unreported.generation, "profile": unreported.profile}
    denial = {
        "layer": layer,
        "rule": rule,
        "class": kind,
        "count": unreported.count,
        "detail": unreported.detail,
    }
    return LifecycleEvent("policy.denied", agent_id, {**agent, **denial}, session_id, trace_id)


def _summary_event(denials: list[tuple[DenialKey, _Unreported]]) -> LifecycleEvent:
    """One event for all denials of one agent; a table by rule if there are several."""
    (first, unreported), *others = denials
    if not others:
        return _event(first, unreported)
    rows = [
        {"layer": key[4], "rule": key[5], "class": key[6], "count": item.count}
        for key, item in denials
    ]
    kind: DenialClass = "attack" if any(row["class"] == "attack" for row in rows) else "policy"
    total = replace(unreported, count=sum(item.count for _, item in denials), detail="")
    event = _event((*first[:4], OTHER, OTHER, kind), total)
    return replace(event, data={**event.data, "table": rows})
