"""The canaries of this host: at its start and every few minutes a real agent's sandbox has to prove itself."""

import asyncio
import os
import secrets
from dataclasses import replace
from typing import Final

import structlog

from agentbox.agents.admission.admission import effective_limits, launch_of
from agentbox.agents.admission.confinement import in_box
from agentbox.agents.admission.policy import holding_of
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.host import Host
from agentbox.agents.registry.store import Happening
from agentbox.agents.runs import home
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.contracts.orchestrator import AgentSpec, Limits
from agentbox.core import clock
from agentbox.core.linux.landlock import Grant
from agentbox.core.slot_errors import AdapterError
from agentbox.sandbox.canary.canary import RULES, Bait
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.client import Agent
from agentbox.sandbox.spec import Launch

EVERY_SECONDS: Final = 300.0
LONGEST_SECONDS: Final = 10.0  # of one run; a slower one is no pass
AGAIN_SECONDS: Final = 5.0  # after a run that could not be made
NOT_RUN: Final = "canary"
WEAK: Final = "weak-canary"  # test hook: a file in the box's run folder that names what the canary's sandbox lacks
_SAID: Final = 1 << 16  # bytes
_END_SECONDS: Final = 3.0
_HOOK_SECONDS: Final = 0.2
_RULE_OF: Final = {"filesystem": ("read", "write"), "signals": ("signal",)}  # what `allow_degraded` may give up
log = structlog.get_logger()


class Canaries:
    """`run` it as one task. Used by one event loop."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._grown = asyncio.Event()
        self._weak = ""  # what the last run's hook said
        self.report = CanaryReport(revision=secrets.randbits(40))

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            failed, rules = await self.look()
            await self._publish(failed, rules)
            await self._sleep(AGAIN_SECONDS if failed == (NOT_RUN,) else EVERY_SECONDS)

    async def grows(self) -> None:
        """Returns after the next run."""
        await self._grown.wait()

    async def look(self) -> tuple[tuple[str, ...], int]:
        """One run: the rules that did not hold, and how many were asked for."""
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                held, asked = await self._probe()
        except (AdapterError, SpawnFailed, OSError, TimeoutError) as error:
            log.error("canary could not run", reason=str(error) or "it took too long")
            return (NOT_RUN,), len(RULES)
        return tuple(rule for rule in asked if rule not in held), len(asked)

    async def _probe(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        entry = self._entry()
        paths, folder = self._host.config.paths, home.of_agent(self._host.config.paths, entry.agent_id)
        mine = folder / "tmp" / "made"
        await asyncio.to_thread(home.remove, folder)  # of a run that was cut short
        try:
            with Bait(paths.run) as bait:
                entry.spec = replace(entry.spec, argv=bait.argv(mine))
                launch = self._weakened(launch_of(entry, self._host.config, self._host.mark, ""), bait)
                agent = await self._host.launcher.spawn(launch)
                said = await _output(agent)
                return bait.held(said, mine), self._asked(agent)
        finally:
            await asyncio.to_thread(home.remove, folder)

    def _entry(self) -> Entry:
        """An agent as any other, but in no table."""
        config = self._host.config
        spec = AgentSpec(name=NOT_RUN, argv=("",), profile="sandboxed")
        limits = replace(
            effective_limits(Limits(), config.limits, once=True, admin=False), wall_seconds=LONGEST_SECONDS
        )
        made = Entry(agent_id=NOT_RUN, spec=spec, limits=limits, principal="", request_id="")
        made.holding = holding_of(spec, config)
        return made

    def _asked(self, agent: Agent) -> tuple[str, ...]:
        """All rules, but those of a mechanism that this kernel lacks and the operator gave up."""
        held, given_up = agent.started.measured.get("held", {}), set[str]()
        for mechanism, found in (("filesystem", "paths"), ("signals", "signals")):
            if mechanism in self._host.config.limits.get("allow_degraded", ()) and not held.get(found, False):
                given_up.update(_RULE_OF[mechanism])
        return tuple(rule for rule in RULES if rule not in given_up)

    def _weakened(self, launch: Launch, bait: Bait) -> Launch:
        """The launch itself, but where a test of a box with hooks asks for a sandbox that does not hold."""
        self._weak = what = self._asked_weak()
        if not what or launch.confinement is None:
            return launch
        given = {"read": "r", "write": "wm"}.get(what)
        if given is None:
            return replace(launch, confinement=None)
        was, place = launch.confinement, str(in_box(self._host.config.paths, bait.folder))
        opened = replace(was, grants=(*was.grants, Grant(place, given)), own=(*was.own, place))
        return replace(launch, confinement=opened)

    def _asked_weak(self) -> str:
        try:
            return (
                (self._host.config.paths.run / WEAK).read_text(encoding="ascii") if self._host.config.test_hooks else ""
            )
        except FileNotFoundError:
            return ""

    async def _sleep(self, seconds: float) -> None:
        """Until the next run; in a box with hooks no longer than until the hook changes."""
        step = _HOOK_SECONDS if self._host.config.test_hooks else seconds
        for _ in range(round(seconds / step)):
            await asyncio.sleep(step)
            if self._asked_weak() != self._weak:
                return

    async def _publish(self, failed: tuple[str, ...], rules: int) -> None:
        before, self.report = self.report, replace(
            self.report, revision=self.report.revision + 1, at=clock.now(), failed=failed, rules=rules
        )  # fmt: skip
        self._grown.set()
        self._grown = asyncio.Event()
        if failed and failed != before.failed:
            log.error("the sandbox does not hold", rules=failed)
            await self._host.save_all((), (Happening("sandbox.failed", "", {"rules": list(failed)}),))
        elif before.failed and not failed:
            await self._host.save_all((), (Happening("sandbox.proven", "", {"rules": rules}),))


async def _output(agent: Agent) -> bytes:
    """All that it printed. No process of its tree lives when this returns, or raises."""
    try:
        await asyncio.shield(agent.ended)
        return os.read(agent.stdout, _SAID)
    except BaseException:
        agent.end(0)
        await asyncio.wait([agent.ended], timeout=_END_SECONDS)
        raise
    finally:
        agent.close_descriptors()
