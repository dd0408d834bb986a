"""The ledger of what agents were refused by a process of ours: exact counts, and events at a bounded rate (denial_rates.py).

The kernel's own refusals are in no ledger: it tells nobody of them.
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

from agentbox.agents.registry.denial_classes import Classes, DenialClass
from agentbox.agents.registry.denial_rates import EVENT_SECONDS, AgentRate
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.store import Happening
from agentbox.contracts.agent_host.denials import DenialCount, DenialCounts
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.slot_errors import PermissionDenied, QuotaExceeded, SpawnError
from agentbox.core.visible import visible

LAYERS: Final = ("proxy", "gateway", "door", "spawn", "reaper")
OTHER: Final = "other"
MOST_RULES = 64  # of a layer; later ones count as `other`
MOST_NAMES = 32  # of agents; later ones count as `other`
MOST_SERIES = 190  # of (name, layer, rule, class): /metrics shows 200 a family (api/metrics/exposition.py)
MOST_EVENTS = 64  # stored at once; what is beyond waits for the next time, and goes on counting
_RULE = re.compile(r"[a-z0-9]([a-z0-9_.:*/ -]{0,46}[a-z0-9*])?")
_DETAIL = 200  # characters
_REFUSING_STAGES = ("profile", "cwd", "confinement")  # of a spawn; a program that is not there was not refused

# Agent id ("" = none was made), then its session and trace; name, layer, rule, class.
Key = tuple[str, str, str, str, str, str, DenialClass]
Save = Callable[[Sequence[Entry], Sequence[Happening]], Coroutine[Any, Any, None]]


@dataclass
class _Untold:
    """Refusals that are in no event yet. `detail` is that of the first."""

    profile: str
    generation: int
    count: int
    detail: str


class Denials:
    """Used by one event loop. `entries` are the agents by id; `save` stores those that changed, and events, in one go."""

    def __init__(self, save: Save, entries: Mapping[str, Entry]) -> None:
        self._save, self._entries = save, entries
        self._totals: dict[tuple[str, str, str, DenialClass], int] = {}
        self._classes = Classes()
        self._names: set[str] = set()
        self._rules: defaultdict[str, set[str]] = defaultdict(set)
        self._untold: dict[Key, _Untold] = {}
        self._rates: dict[str, AgentRate] = {}  # by agent
        self._ready: list[Happening] = []
        self._telling: asyncio.Task[None] | None = None
        self._all_of_them = False  # at once, whatever the rates
        self._sooner = asyncio.Event()
        self._grown = asyncio.Event()
        self.revision = secrets.randbits(40)  # grows with each refusal; no other process of this program had it

    def on_denied(
        self, agent_id: str, layer: str, rule: str, count: int = 1, detail: str = "", signature: str = ""
    ) -> None:
        """`count` refusals of that agent. Unknown layers, and rules beyond the bound, count as `other`; so does an agent
        that is not known, which has no event. `detail` may be an agent's words: it is cut and escaped. Of benign ones
        there is no event."""
        entry = self._entries.get(agent_id)
        layer, rule = self._bounded(layer, rule)
        if entry is None:
            self._count(OTHER, layer, rule, "policy", count)
            return
        mine = entry.denials.setdefault(layer, {})
        mine[rule] = mine.get(rule, 0) + count
        for kind, number in self._classes.split(agent_id, (layer, rule, signature), count).items():
            name = self._count(entry.spec.name, layer, rule, kind, number)
            if kind == "benign":
                quiet = entry.quiet.setdefault(layer, {})
                quiet[rule] = quiet.get(rule, 0) + number
            else:
                key = (agent_id, "", "", name, layer, rule, kind)
                self._tell(key, entry.spec.profile, entry.generation, number, detail)

    def forget(self, agent_id: str) -> None:
        """The agent is over: what is in no event yet is told, and only its totals are kept."""
        self._classes.forget(agent_id)
        if rate := self._rates.pop(agent_id, None):
            mine = [key for key in self._untold if key[0] == agent_id]
            self._ready += self._taken(mine, rate, time.monotonic())
            self._sooner.set()

    def on_spawn(
        self, spec: AgentSpec, error: BaseException | None, agent_id: str = "", session_id: str = "", trace_id: str = ""
    ) -> None:
        """Counts a start that was refused by rule; what failed for another reason does not count. `agent_id` where the
        agent exists, as at a restart; else the event stands under its parent's, or under none, with session and trace of
        who asked."""
        rule = rule_of(error)
        if not rule:
            return
        if agent_id in self._entries:
            self.on_denied(agent_id, "spawn", rule, 1, str(error))
            return
        layer, rule = self._bounded("spawn", rule)
        parent = spec.parent_id if spec.parent_id in self._entries else None
        name = self._count(spec.name, layer, rule, "policy", 1)
        told = ("", "") if parent else (session_id, trace_id)
        self._tell((parent or "", *told, name, layer, rule, "policy"), spec.profile, 0, 1, str(error))

    def totals(self) -> DenialCounts:
        """What was refused since this process began, by name of the agent, layer, rule and class."""
        rows = sorted(self._totals.items())
        found = tuple(
            DenialCount(agent=name, layer=at, rule=by, count=count, denial_class=kind)
            for (name, at, by, kind), count in rows
        )
        return DenialCounts(revision=self.revision, totals=found)

    async def grows(self) -> None:
        """Returns after the next refusal."""
        await self._grown.wait()

    async def flush(self) -> None:
        """Returns once every refusal so far is in an event."""
        self._all_of_them = True
        self._sooner.set()
        while self._telling is not None and not self._telling.done():
            await asyncio.wait([self._telling])
        self._all_of_them = False

    def _bounded(self, layer: str, rule: str) -> tuple[str, str]:
        layer = layer if layer in LAYERS else OTHER
        known = self._rules[layer]
        if rule in known or (_RULE.fullmatch(rule) and len(known) < MOST_RULES):
            known.add(rule)
            return layer, rule
        return layer, OTHER

    def _count(self, name: str, layer: str, rule: str, kind: DenialClass, count: int) -> str:
        """Returns the name under which it counts."""
        if name not in self._names and len(self._names) >= MOST_NAMES:
            name = OTHER
        self._names.add(name)
        key = (name, layer, rule, kind)
        if key not in self._totals and len(self._totals) >= MOST_SERIES:
            key = (OTHER, layer, OTHER, kind)
        self._totals[key] = self._totals.get(key, 0) + count
        self.revision += 1
        self._grown.set()
        self._grown = asyncio.Event()
        return name

    def _tell(self, key: Key, profile: str, generation: int, count: int, detail: str) -> None:
        if waiting := self._untold.get(key):
            waiting.count += count
            return
        self._untold[key] = _Untold(profile, generation, count, visible(detail[:_DETAIL]))
        if key[0]:
            now = time.monotonic()
            self._rates.setdefault(key[0], AgentRate(now)).refused(key[4:], now)
        self._sooner.set()
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_all(), name="denials")

    async def _tell_all(self) -> None:
        """As their rates allow; the pause bounds how often something is stored."""
        while self._untold or self._ready:
            self._sooner.clear()
            told = [*self._ready, *self._due(time.monotonic())]
            self._ready = []
            if told:
                of = {one.agent_id: entry for one in told if (entry := self._entries.get(one.agent_id))}
                await self._save(tuple(of.values()), told)
                await asyncio.sleep(EVENT_SECONDS)
            elif not self._all_of_them:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._wait(time.monotonic())):
                        await self._sooner.wait()
        living = {one for one in self._rates if one in self._entries and not self._entries[one].over}
        self._rates = {one: rate for one, rate in self._rates.items() if one in living}

    def _due(self, now: float) -> list[Happening]:
        """Those whose time has come, at most MOST_EVENTS."""
        due = [key for key in self._untold if self._all_of_them or self._when(key, now) <= now][:MOST_EVENTS]
        told = [_event(key, self._untold.pop(key)) for key in due if not key[0]]
        by_agent: defaultdict[str, list[Key]] = defaultdict(list)
        for key in due:
            if key[0]:
                by_agent[key[0]].append(key)
        for agent_id, keys in by_agent.items():
            told += self._taken(keys, self._rates[agent_id], now)
        return told

    def _wait(self, now: float) -> float:
        return max(EVENT_SECONDS, min(self._when(key, now) for key in self._untold) - now)

    def _when(self, key: Key, now: float) -> float:
        """Who is no agent asked for each event by a request."""
        return self._rates[key[0]].due(key[4:], now) if key[0] else now

    def _taken(self, keys: list[Key], rate: AgentRate, now: float) -> list[Happening]:
        """An event of each of an agent's, or one of all."""
        told: list[Happening] = []
        while keys:
            few = keys if rate.many(now) else keys[:1]
            keys = keys[len(few) :]
            told.append(_table([(key, self._untold.pop(key)) for key in few]))
            rate.tell([key[4:] for key in few], now)
        return told


def rule_of(error: BaseException | None) -> str:
    """By what a start was refused; "" when it was not, or failed otherwise."""
    if isinstance(error, QuotaExceeded):
        return str(error.members.get("limit", "limits"))
    if isinstance(error, PermissionDenied):
        return "rights"
    if isinstance(error, SpawnError) and error.members.get("stage") in _REFUSING_STAGES:
        return str(error.members["stage"])
    return ""


def _event(key: Key, untold: _Untold) -> Happening:
    agent_id, session_id, trace_id, name, layer, rule, kind = key
    who = {"name": name, "generation": untold.generation, "profile": untold.profile}
    refused = {"layer": layer, "rule": rule, "class": kind, "count": untold.count, "detail": untold.detail}
    return Happening("policy.denied", agent_id, {**who, **refused}, session_id, trace_id)


def _table(refused: list[tuple[Key, _Untold]]) -> Happening:
    """One event of all of them, which are of one agent: by rule, where there are several."""
    (first, untold), *more = refused
    if not more:
        return _event(first, untold)
    rows = [{"layer": key[4], "rule": key[5], "class": key[6], "count": one.count} for key, one in refused]
    kind: DenialClass = "attack" if any(row["class"] == "attack" for row in rows) else "policy"
    whole = replace(untold, count=sum(one.count for _, one in refused), detail="")
    event = _event((*first[:4], OTHER, OTHER, kind), whole)
    return replace(event, data={**event.data, "table": rows})
