"""Canaries of this host: at startup and every few minutes they test the sandbox of a real agent."""

import asyncio
import os
import secrets
import time
from dataclasses import replace
from typing import Final

import structlog

from agentbox.agents.admission.admit import UNCOUNTED, Requester, admit
from agentbox.agents.admission.draft import AdmissionInputs
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.runs import home
from agentbox.agents.runs.confinement import resolve_in_box
from agentbox.agents.runs.launch_spec import build_launch
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core import clock
from agentbox.core.linux.landlock import PathRule
from agentbox.core.slot_errors import AdapterError
from agentbox.sandbox.canary.canary import RULES, CanaryTargets
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.client import AgentProcess
from agentbox.sandbox.spec import Launch

INTERVAL_SECONDS: Final = 300.0
MAX_SECONDS: Final = 10.0  # of one run; a slower one fails
RETRY_SECONDS: Final = 5.0  # after a run that could not start
NOT_RUN: Final = "canary"
WEAK_HOOK: Final = "weak-canary"  # test hook: file in the run directory, names what is not enforced
_MAX_OUTPUT: Final = 1 << 16  # bytes
_END_SECONDS: Final = 3.0
_HOOK_SECONDS: Final = 0.2
_RULES_OF: Final = {
    "filesystem": ("read", "write"),
    "signals": ("signal",),
}  # what `allow_degraded` may waive
log = structlog.get_logger()


class SandboxCanaryRunner:
    """Start `run` as one task. Used by one event loop."""

    def __init__(self, host: HostState) -> None:
        self._host = host
        self._published = asyncio.Event()
        self._hook = ""  # content of the hook file at the last run
        self.report = CanaryReport(revision=secrets.randbits(40))

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            failed, rules = await self.run_once()
            await self._publish(failed, rules)
            await self._sleep(RETRY_SECONDS if failed == (NOT_RUN,) else INTERVAL_SECONDS)

    async def wait_for_report(self) -> None:
        """Return after the next run."""
        await self._published.wait()

    async def run_once(self) -> tuple[tuple[str, ...], int]:
        """Run once; return the rules that were not enforced and the number of required rules."""
        try:
            async with asyncio.timeout(MAX_SECONDS):
                passed, required = await self._probe()
        except (AdapterError, SpawnFailed, OSError, TimeoutError) as error:
            log.error("canary run failed", reason=str(error) or "timed out")
            return (NOT_RUN,), len(RULES)
        return tuple(rule for rule in required if rule not in passed), len(required)

    async def _probe(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        entry = self._build_entry()
        paths, directory = (
            self._host.config.paths,
            home.agent_dir(self._host.config.paths, entry.agent_id),
        )
        new_file = directory / "tmp" / "made"
        await asyncio.to_thread(home.remove, directory)  # left by an interrupted run
        try:
            with CanaryTargets(paths.run) as targets:
                entry.spec = replace(entry.spec, argv=targets.argv(new_file))
                launch = self._weaken(
                    build_launch(entry, self._host.config, self._host.mark, ""), targets
                )
                process = await self._host.launcher.spawn(launch)
                output = await _output(process)
                return targets.enforced_rules(output, new_file), self._required_rules(process)
        finally:
            await asyncio.to_thread(home.remove, directory)

    def _build_entry(self) -> AgentRecord:
        """An agent like any other, but not registered."""
        spec = AgentSpec(name=NOT_RUN, argv=(NOT_RUN,), profile="sandboxed")
        requester = Requester(principal="", request_id="")
        inputs = AdmissionInputs(config=self._host.config, now=time.time(), once=True)
        draft = admit(spec, requester, inputs, UNCOUNTED)
        return AgentRecord(
            agent_id=NOT_RUN,
            spec=draft.spec,
            limits=replace(draft.limits, wall_seconds=MAX_SECONDS),
            principal=requester.principal,
            request_id=requester.request_id,
            grant_set=draft.grant_set,
        )

    def _required_rules(self, process: AgentProcess) -> tuple[str, ...]:
        """All rules except those of a mechanism that this kernel lacks and the operator waived."""
        enforced, waived = process.started.measured.get("held", {}), set[str]()
        for mechanism, key in (("filesystem", "paths"), ("signals", "signals")):
            if mechanism in self._host.config.limits.allow_degraded and not enforced.get(
                key, False
            ):
                waived.update(_RULES_OF[mechanism])
        return tuple(rule for rule in RULES if rule not in waived)

    def _weaken(self, launch: Launch, targets: CanaryTargets) -> Launch:
        """The launch, weakened if the hook of a test asks for it."""
        self._hook = hook = self._read_hook()
        if not hook or launch.confinement is None:
            return launch
        access = {"read": "r", "write": "wm"}.get(hook)
        if access is None:
            return replace(launch, confinement=None)
        confinement, directory = (
            launch.confinement,
            str(resolve_in_box(self._host.config.paths, targets.directory)),
        )
        weakened = replace(
            confinement,
            grants=(*confinement.grants, PathRule(directory, access)),
            own=(*confinement.own, directory),
        )
        return replace(launch, confinement=weakened)

    def _read_hook(self) -> str:
        try:
            return (
                (self._host.config.paths.run / WEAK_HOOK).read_text(encoding="ascii")
                if self._host.config.test_hooks
                else ""
            )
        except FileNotFoundError:
            return ""

    async def _sleep(self, seconds: float) -> None:
        """Sleep until the next run; with test hooks, at most until the hook changes."""
        step = _HOOK_SECONDS if self._host.config.test_hooks else seconds
        for _ in range(round(seconds / step)):
            await asyncio.sleep(step)
            if self._read_hook() != self._hook:
                return

    async def _publish(self, failed: tuple[str, ...], rules: int) -> None:
        previous, self.report = (
            self.report,
            replace(
                self.report,
                revision=self.report.revision + 1,
                at=clock.now(),
                failed=failed,
                rules=rules,
            ),
        )
        self._published.set()
        self._published = asyncio.Event()
        if failed and failed != previous.failed:
            log.error("sandbox canary failed", rules=failed)
            await self._host.save_all(
                (), (LifecycleEvent("sandbox.failed", "", {"rules": list(failed)}),)
            )
        elif previous.failed and not failed:
            await self._host.save_all((), (LifecycleEvent("sandbox.proven", "", {"rules": rules}),))


async def _output(process: AgentProcess) -> bytes:
    """The output of the process. None of its tree runs when this returns or raises."""
    try:
        await asyncio.shield(process.ended)
        return os.read(process.stdout, _MAX_OUTPUT)
    except BaseException:
        process.end(0)
        await asyncio.wait([process.ended], timeout=_END_SECONDS)
        raise
    finally:
        process.close_descriptors()
