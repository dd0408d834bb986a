"""The ledger of refusals: exact counts, names and rules within bounds, events at a bounded rate."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.host_configs import host_config

from agentbox.agents.registry import denial_rates, lifecycle_event_record
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.denial_rates import EVENT_SECONDS
from agentbox.agents.registry.denials import MAX_NAMES, MAX_RULES, MAX_SERIES, DenialLedger
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.registry.store import AgentStore
from agentbox.contracts.orchestrator import AgentSpec, Limits
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import InvalidTransition, QuotaExceeded, SpawnError

RULE = ("agent-api", "x", "policy")


@pytest_asyncio.fixture
async def host(tmp_path: Path) -> AsyncIterator[HostState]:
    """With its store open and no agent."""
    config = host_config(Paths(tmp_path))
    store = AgentStore(config.state_dir)
    await store.open()
    yield HostState(config, store, "mark")
    await store.close()


@pytest.fixture
def ledger(host: HostState) -> DenialLedger:
    return host.denials


def add_agent(host: HostState, agent_id: str, name: str = "builder") -> AgentRecord:
    spec = AgentSpec(name=name, argv=("true",), profile="sandboxed")
    made = AgentRecord(
        agent_id=agent_id, spec=spec, limits=Limits(), principal="", request_id=agent_id
    )
    host.entries[agent_id] = made
    return made


async def events(host: HostState) -> list[dict[str, Any]]:
    await host.denials.flush()
    return await host.store.read_record(0, 10_000)


def counts(ledger: DenialLedger) -> dict[tuple[str, str, str], int]:
    return {(row.agent, row.layer, row.rule): row.count for row in ledger.totals().totals}


async def test_every_refusal_counts_and_is_in_an_event(
    host: HostState, ledger: DenialLedger
) -> None:
    """A flood of 5,000 for half a second: the counts are exact, the events few, and their counts add up to it."""
    entry, given, end = add_agent(host, "a"), 0, time.monotonic() + 0.5
    while time.monotonic() < end or given < 5000:
        ledger.on_denied("a", "proxy", "net connect", 1, "example.org:443")
        given += 1
        if given % 100 == 0:
            await asyncio.sleep(0.001)
    lasted = time.monotonic() - end + 0.5
    told = await events(host)
    assert counts(ledger) == {("builder", "proxy", "net connect"): given}
    assert entry.denials == {"proxy": {"net connect": given}}
    assert sum(line["data"]["count"] for line in told) == given
    assert 2 <= len(told) <= lasted / EVENT_SECONDS + 2
    assert told[0]["type"] == "policy.denied"
    assert told[0]["data"] == {
        "name": "builder", "generation": 1, "profile": "sandboxed", "layer": "proxy", "rule": "net connect", "class": "policy",
        "count": told[0]["data"]["count"], "detail": "example.org:443",
    }  # fmt: skip


async def test_what_was_counted_is_kept_with_the_agent(
    host: HostState, ledger: DenialLedger
) -> None:
    """A later process of the host reads it from the row."""
    entry = add_agent(host, "a")
    await host.save(entry)
    ledger.on_denied("a", "agent-api", "tool.invoke", 3)
    await ledger.flush()
    assert [one.info().denials for one in await host.store.entries()] == [
        {"agent-api": {"tool.invoke": 3}}
    ]


async def test_names_and_rules_stay_within_bounds(host: HostState, ledger: DenialLedger) -> None:
    """Rules without end, of agents without end: few series, and no refusal lost."""
    for number in range(MAX_RULES + 40):
        add_agent(host, str(number), f"agent-{number}")
        for rule in range(3):
            ledger.on_denied(str(number), "agent-api", f"rule-{number}-{rule}")
    found = counts(ledger)
    assert sum(found.values()) == 3 * (MAX_RULES + 40)
    assert len(found) <= MAX_SERIES + 2
    assert len({name for name, _, _ in found}) <= MAX_NAMES + 1
    assert len({rule for _, _, rule in found}) <= MAX_RULES + 1
    assert found["other", "agent-api", "other"] > 100


@pytest.mark.parametrize("rule", ["", "Upper", " a", "a\nb", 'quote"', "x" * 49])
async def test_what_is_no_name_of_a_rule_counts_as_other(
    host: HostState, ledger: DenialLedger, rule: str
) -> None:
    """No text of an agent's becomes a label."""
    add_agent(host, "a")
    ledger.on_denied("a", "agent-api", rule)
    ledger.on_denied("a", "no such layer", "x")
    ledger.on_denied("nobody", "agent-api", "x")
    assert set(counts(ledger)) == {
        ("builder", "agent-api", "other"),
        ("builder", "other", "x"),
        ("other", "agent-api", "x"),
    }


async def test_details_are_escaped_and_cut(host: HostState, ledger: DenialLedger) -> None:
    """An agent's words reach a terminal as text."""
    add_agent(host, "a")
    ledger.on_denied("a", "agent-api", "x", 1, "\x1b[2J\u202e" + "y" * 500)
    (line,) = await events(host)
    assert line["data"]["detail"].startswith("\\x1b[2J\\u202e")
    assert "\x1b" not in line["data"]["detail"]
    assert len(line["data"]["detail"]) < 210


async def test_a_start_that_was_refused_counts_by_its_rule(
    host: HostState, ledger: DenialLedger
) -> None:
    """Under the requested name; in the journal under the parent, if any. A failure is no denial."""
    add_agent(host, "a", "parent")
    child = AgentSpec(name="child", argv=("true",), profile="unrestricted", parent_id="a")
    alone = AgentSpec(name="alone", argv=("true",), profile="sandboxed")
    too_much = QuotaExceeded("no", limit="memory", observed=2, cap=1, config_path="limits.memory")
    refused: list[tuple[AgentSpec, BaseException | None]] = [
        (child, SpawnError("no", stage="profile")),
        (alone, SpawnError("no", stage="cwd")),
        (alone, too_much),
        (alone, SpawnError("no", stage="exec")),
        (alone, InvalidTransition("no", **{"id": "", "from": "", "to": "", "blockers": []})),
        (alone, None),
    ]
    for spec, error in refused:
        ledger.on_spawn(spec, error)
    assert Counter(counts(ledger)) == {
        ("child", "spawn", "profile"): 1,
        ("alone", "spawn", "cwd"): 1,
        ("alone", "spawn", "memory"): 1,
    }
    told = {(line["agent_id"], line["data"]["name"]) for line in await events(host)}
    assert told == {("a", "child"), ("", "alone")}


async def test_an_agent_that_was_forgotten_does_not_come_back(
    host: HostState, ledger: DenialLedger
) -> None:
    """Its denials are reported; its row is not written again."""
    entry = add_agent(host, "a")
    await host.save(entry)
    ledger.on_denied("a", "agent-api", "x")
    del host.entries["a"]
    await host.store.delete_agents(["a"])
    assert [line["agent_id"] for line in await events(host)] == ["a"]
    assert await host.store.entries() == []


async def test_benign_refusals_are_counted_apart_and_no_events(
    host: HostState, ledger: DenialLedger
) -> None:
    """For the event that the agent ended; the store has them, too."""
    entry = add_agent(host, "a")
    ledger.on_denied("a", "reaper", "socket", 3, signature="unix-stream-nonblock-cloexec")
    ledger.on_denied("a", "reaper", "socket", 2)
    assert (entry.quiet, entry.denials) == ({"reaper": {"socket": 3}}, {"reaper": {"socket": 5}})
    assert [line["data"]["count"] for line in await events(host)] == [2]
    assert AgentRecord.from_row(entry.to_row()).quiet == entry.quiet


async def stored(host: HostState, count: int) -> list[dict[str, Any]]:
    """The events, once there are so many; without hurrying them."""
    async with asyncio.timeout(20):
        while len(found := await host.store.read_record(0, 10_000)) < count:
            await asyncio.sleep(0.02)
    return found


async def test_what_waits_for_its_minute_is_told_when_the_agent_ends(
    host: HostState, ledger: DenialLedger
) -> None:
    """With its exact count; nothing before."""
    add_agent(host, "a")
    host.denials._rates["a"] = rate = denial_rates.DenialRate(time.monotonic())
    rate.on_denied(RULE, time.monotonic() - 11)
    rate.on_event([RULE], time.monotonic())
    for _ in range(7):
        ledger.on_denied("a", "agent-api", "x")
        await asyncio.sleep(0.02)
    assert await host.store.read_record(0, 10) == []
    ledger.discard("a")
    assert [line["data"]["count"] for line in await stored(host, 1)] == [7]


async def test_beyond_the_hour_s_number_one_event_has_a_table(
    host: HostState, ledger: DenialLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all rules; another agent's events are its own."""
    monkeypatch.setattr(denial_rates, "MAX_PER_HOUR", 2)
    add_agent(host, "a")
    add_agent(host, "b", "other one")
    for number in range(1, 5):
        ledger.on_denied("a", "agent-api", f"rule-{number}", number, "said")
    ledger.on_denied("a", "reaper", "ptrace", 5)
    ledger.on_denied("b", "agent-api", "x")
    told = await stored(host, 4)
    assert [(line["agent_id"], line["data"]["rule"], line["data"]["count"]) for line in told] == [
        ("a", "rule-1", 1), ("a", "rule-2", 2), ("a", "other", 12), ("b", "x", 1),
    ]  # fmt: skip
    table = told[2]["data"]
    assert (table["class"], table["layer"], table["detail"]) == ("attack", "other", "")
    assert [(row["layer"], row["rule"], row["class"], row["count"]) for row in table["table"]] == [
        ("agent-api", "rule-3", "policy", 3), ("agent-api", "rule-4", "policy", 4), ("reaper", "ptrace", "attack", 5),
    ]  # fmt: skip


def event_times(seconds: float, rules: int = 1, every: float = 0.05) -> list[float]:
    """When an agent that is refused without end by so many rules has events: a simulation of the ledger's loop."""
    rate, now, found = denial_rates.DenialRate(0.0), 0.0, []
    names = [("agent-api", str(number), "policy") for number in range(rules)]
    waiting: set[denial_rates.RuleKey] = set()
    while now < seconds:
        for name in set(names) - waiting:
            rate.on_denied(name, now)
        waiting = set(names)
        due = [name for name in names if rate.due(name, now) <= now]
        while due:
            few = due if rate.is_exhausted(now) else due[:1]
            due = due[len(few) :]
            rate.on_event(few, now)
            waiting -= set(few)
            found.append(now)
        now += every
    return found


def test_ten_a_second_for_ten_seconds_then_one_a_minute() -> None:
    """Of a rule. After a minute without any there may be a new burst."""
    found = event_times(620)
    assert 60 <= sum(at < 10 for at in found) <= 101
    assert sum(at >= 10.5 for at in found) == 10
    rate = denial_rates.DenialRate(0.0)
    rate.on_denied(RULE, 0.0)
    rate.on_event([RULE], 30.0)
    rate.on_denied(RULE, 31.0)
    assert rate.due(RULE, 31.0) == 90.0
    rate.on_event([RULE], 90.0)
    rate.on_denied(RULE, 151.0)
    assert rate.due(RULE, 151.0) == 151.0


def test_six_hundred_an_hour_then_one_a_minute() -> None:
    """Of all rules of an agent; the next hour has its own."""
    found = event_times(7200, rules=20)
    first = [at for at in found if at < 3600]
    assert 600 <= len(first) <= 661
    assert sum(at < 10 for at in first) >= 600
    assert 58 <= sum(at >= 60 for at in first) <= 60
    assert 600 <= len(found) - len(first) <= 661


async def test_events_that_nobody_takes_are_bounded_and_refusals_go_first(
    host: HostState, monkeypatch: Any
) -> None:
    """The store grows no further, and a flood of refusals displaces nothing of what became of agents."""
    monkeypatch.setattr(lifecycle_event_record, "KEEP_RECORD", 60)
    monkeypatch.setattr(lifecycle_event_record, "PRUNE_EVERY", 10)
    for number in range(100):
        happened = [LifecycleEvent("policy.denied", "a", {"n": number})] * 4
        if number % 2 == 0:
            happened.insert(2, LifecycleEvent("agent.started", "a", {"n": number}))
        await host.store.save((), *happened)
    kept = [(line["type"], line["data"]["n"]) for line in await host.store.read_record(0, 10_000)]
    assert [number for kind, number in kept if kind == "agent.started"] == list(range(0, 100, 2))
    assert 60 <= len(kept) <= 70
    assert kept[-1] == ("policy.denied", 99)
    for number in range(100, 300):
        await host.store.save((), LifecycleEvent("agent.started", "a", {"n": number}))
    kept = [(line["type"], line["data"]["n"]) for line in await host.store.read_record(0, 10_000)]
    assert kept[-60:] == [("agent.started", number) for number in range(240, 300)]
    assert len(kept) <= 70
