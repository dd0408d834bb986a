"""All sandboxes of this host: agents of the kind `sandbox`, and the programs in them."""

import asyncio
import re
import signal as signals
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Page
from agentbox.agents.admission.admit import Requester
from agentbox.agents.errors import invalid
from agentbox.agents.registry.agent_info import detailed_info
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.registry.listing import select_page
from agentbox.agents.registry.sandbox_events import sandbox_created, sandbox_ended
from agentbox.agents.registry.session_generations import start_again, suspend
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.sandboxes import specs
from agentbox.agents.sandboxes.exec_checks import check_exec
from agentbox.agents.sandboxes.exec_run import ExecRun
from agentbox.agents.sandboxes.files import SandboxFiles
from agentbox.agents.sandboxes.sandbox import SandboxPrograms
from agentbox.contracts.arguments import MAX_GRACE
from agentbox.contracts.orchestrator import (
    AgentKind,
    AgentSpec,
    Signal,
)
from agentbox.contracts.sandboxes import (
    NewSandbox,
    Sandbox,
    SandboxChanges,
    SessionSandbox,
)
from agentbox.core import clock
from agentbox.core.slot_errors import NotFound, invalid_transition
from agentbox.core.visible_text import escape_invisible
from agentbox.plan.names import MCP_HOST

_MAX_CHANGES = 20  # paths in an answer
_UPLOAD = re.compile("[A-Za-z0-9-]{1,64}")


class SandboxManager:
    """For one event loop."""

    def __init__(self, registry: AgentRegistry) -> None:
        self._registry = registry
        self._programs: dict[str, SandboxPrograms] = {}  # by agent id
        self._changing: dict[str, asyncio.Lock] = {}  # by agent id

    async def create(self, sandbox: NewSandbox, requester: Requester) -> Sandbox:
        """Raises what spawning an agent raises."""
        is_server = requester.program == MCP_HOST
        config = self._registry.host.config
        spec = specs.of_server(sandbox) if is_server else specs.of_sandbox(sandbox, config)
        return await self._spawn(spec, requester, "sandbox")

    async def create_of_session(self, sandbox: SessionSandbox, requester: Requester) -> Sandbox:
        """Raises what spawning an agent raises."""
        return await self._spawn(specs.of_session(sandbox), requester, "session")

    async def _spawn(self, spec: AgentSpec, requester: Requester, kind: AgentKind) -> Sandbox:
        created: list[AgentRecord] = []  # empty if an earlier request made it

        def on_created(runner: AgentRunner) -> None:
            created.append(runner.entry)
            self._on_created(runner)

        handle = await self._registry.spawn(spec, requester, kind=kind, on_created=on_created)
        for entry in created:
            await self._registry.host.save(entry, sandbox_created(entry))
        return self._describe(self._entry(handle.agent_id))

    async def suspend(self, sandbox_id: str, grace_s: float | None) -> Sandbox:
        """Returns when no process of it is left. Raises NotFound, SandboxOver, InvalidTransition,
        ValidationError."""
        entry = self._session_entry(sandbox_id, "suspended")
        if grace_s is not None and not 0 <= grace_s <= MAX_GRACE:
            raise invalid("/grace_s", f"must be from 0 to {MAX_GRACE:g}")
        async with self._changing.setdefault(sandbox_id, asyncio.Lock()):
            await suspend(self._registry, entry, grace_s)
            await self._of(sandbox_id).close()
        return self.get(sandbox_id)

    async def resume(self, sandbox_id: str, requester: Requester) -> Sandbox:
        """One more generation of a suspended one; one call at a time starts it. Raises as
        `suspend`, and what spawning an agent raises."""
        entry = self._session_entry(sandbox_id, "resumed")
        async with self._changing.setdefault(sandbox_id, asyncio.Lock()):
            if entry.state == "suspended":
                await self._of(sandbox_id).close()  # that of the generation before
            await start_again(self._registry, entry, requester, self._on_created_again)
        return self.get(sandbox_id)

    async def changes(self, sandbox_id: str) -> SandboxChanges:
        """Raises NotFound, SandboxOver, InvalidTransition, BackendError."""
        entry = self._session_entry(sandbox_id, "compared")
        paths = await self._registry.host.reviews.preview(entry.agent_id)
        shown = tuple(escape_invisible(path) for path in sorted(paths)[:_MAX_CHANGES])
        return SandboxChanges(total=len(paths), paths=shown)

    async def review(self, sandbox_id: str) -> bool:
        """Raises NotFound, SandboxOver, InvalidTransition."""
        entry = self._session_entry(sandbox_id, "reviewed")
        async with self._changing.setdefault(sandbox_id, asyncio.Lock()):
            if entry.state != "suspended":
                raise invalid_transition(
                    f"sandbox {sandbox_id} cannot be reviewed: it is {entry.state}",
                    sandbox_id,
                    from_state=entry.state,
                    to_state="reviewed",
                )
            return await self._registry.host.reviews.seal(entry) is not None

    def page(
        self,
        limit: int,
        cursor: str | None,
        is_visible: Callable[[str], bool] = lambda sandbox_id: True,
    ) -> Page[Sandbox]:
        """In order of id, which is the order of creation; only those that are visible: those of
        sessions to their program alone."""
        kinds = ("sandbox", "session") if context.current().program else ("sandbox",)
        entries = (
            entry
            for entry in self._registry.entries.values()
            if entry.kind in kinds and is_visible(entry.agent_id)
        )
        return select_page(entries, self._describe, limit, cursor)

    def get(self, sandbox_id: str) -> Sandbox:
        """With its branch. Raises NotFound."""
        entry = self._entry(sandbox_id)
        branch = detailed_info(entry, self._registry.host).branch
        return replace(self._describe(entry), branch=branch)

    async def end(self, sandbox_id: str, grace_s: float | None) -> Sandbox:
        """Returns when no process of it is left and its branch is sealed. Raises NotFound."""
        entry = self._entry(sandbox_id)
        if grace_s is not None and not 0 <= grace_s <= MAX_GRACE:
            raise invalid("/grace_s", f"must be from 0 to {MAX_GRACE:g}")
        await self._registry.terminate(entry.handle, grace_s)
        await self._of(sandbox_id).close()
        return self.get(sandbox_id)

    @asynccontextmanager
    async def exec(
        self,
        sandbox_id: str,
        argv: tuple[str, ...],
        *,
        requester: Requester,
        cwd: str,
        env: Mapping[str, str],
        stdin: bytes | None,
        interactive: bool,
        timeout_s: float,
        max_output: int,
        detach: bool,
    ) -> AsyncIterator[ExecRun]:
        """Once the program has ended, or with `detach` started; a repeated request of the same
        caller gets the same program. Its result is kept until the context ends. Runs on if the
        caller is cancelled. Raises NotFound, SandboxOver, ExecLimit, ValidationError."""
        check_exec(argv, cwd, env, timeout_s, max_output)
        host = self._registry.host
        host.config = host.live_config.apply(host.config)
        programs = self._of(sandbox_id)
        starting = asyncio.create_task(
            programs.exec(
                argv,
                request=(requester.principal, requester.request_id),
                cwd=cwd,
                env=env,
                stdin=stdin,
                interactive=interactive,
                timeout_s=timeout_s,
                max_output=max_output,
            )
        )
        run = await asyncio.shield(starting)
        with programs.keep(run):
            if not detach:
                await asyncio.shield(run.done)
            yield run
        if programs.is_over:
            self._registry.schedule_drop()

    def find(self, sandbox_id: str, n: int) -> ExecRun:
        """Raises NotFound."""
        return self._of(sandbox_id).get(n)

    def signal(self, sandbox_id: str, n: int, signal: Signal) -> None:
        """Raises NotFound, InvalidTransition."""
        self._of(sandbox_id).signal(n, signals.Signals[f"SIG{signal}"])

    def files(self, sandbox_id: str) -> SandboxFiles:
        """Of a running sandbox. Raises NotFound, SandboxOver."""
        host, programs = self._registry.host, self._of(sandbox_id)
        host.config = host.live_config.apply(host.config)
        return SandboxFiles(programs.roots(), host.config.sandboxes.max_file)

    def upload_path(self, sandbox_id: str, upload: str) -> Path:
        """Where parts of a file wait for the last one. Raises ValidationError."""
        if not _UPLOAD.fullmatch(upload):
            raise invalid("/upload", "must be an id of 1 to 64 letters, digits and -")
        return self._of(sandbox_id).upload_path(upload)

    def _on_created(self, runner: AgentRunner) -> None:
        agent_id, known = runner.entry.agent_id, self._registry.entries
        self._programs = {id: one for id, one in self._programs.items() if id in known}
        self._changing = {id: lock for id, lock in self._changing.items() if id in known}
        programs = self._programs[agent_id] = self._make(runner.entry, runner)
        self._follow(runner, programs)

    def _on_created_again(self, runner: AgentRunner) -> None:
        programs = self._of(runner.entry.agent_id)
        programs.open(runner)
        self._follow(runner, programs)

    def _follow(self, runner: AgentRunner, programs: SandboxPrograms) -> None:
        runner.done.add_done_callback(
            lambda _: self._registry.start_cleanup(self._close(runner, programs))
        )

    async def _close(self, runner: AgentRunner, programs: SandboxPrograms) -> None:
        """What its programs left behind counts among the output of ended agents from now on."""
        await programs.close(runner)
        entry = runner.entry
        if entry.over:  # else it was never started, or is suspended
            await self._registry.host.save(entry, sandbox_ended(entry, programs.started))
        self._registry.schedule_drop()

    def _session_entry(self, sandbox_id: str, target: str) -> AgentRecord:
        """Raises NotFound, SandboxOver, InvalidTransition."""
        entry = self._entry(sandbox_id)
        if entry.over:
            raise self._of(sandbox_id).over()
        if entry.kind != "session":
            raise invalid_transition(
                f"sandbox {sandbox_id} cannot be {target}: it is not that of a session",
                sandbox_id,
                from_state=entry.state,
                to_state=target,
            )
        return entry

    def _make(self, entry: AgentRecord, runner: AgentRunner | None) -> SandboxPrograms:
        stream = self._registry.streams[entry.agent_id]
        return SandboxPrograms(self._registry.host, entry, runner, stream)

    def _entry(self, sandbox_id: str) -> AgentRecord:
        entry = self._registry.entries.get(sandbox_id)
        if entry is None or entry.kind == "agent":
            raise NotFound(f"cannot find sandbox {sandbox_id}", resource="sandbox", id=sandbox_id)
        return entry

    def _of(self, sandbox_id: str) -> SandboxPrograms:
        """Of a sandbox of an earlier agent-host: what that stored."""
        entry = self._entry(sandbox_id)
        if (programs := self._programs.get(sandbox_id)) is None:
            programs = self._programs[sandbox_id] = self._make(entry, None)
            programs.recover()
        return programs

    def _describe(self, entry: AgentRecord) -> Sandbox:
        created = clock.from_unix(entry.created)
        return Sandbox(
            sandbox_id=entry.agent_id,
            name=entry.spec.name,
            profile=entry.spec.profile,
            state=entry.state,
            created_at=created,
            expires_at=created + timedelta(seconds=entry.limits.wall_seconds or 0)
            if entry.kind == "sandbox"
            else None,
            labels=entry.spec.labels,
            execs=self._of(entry.agent_id).infos(),
            exit=None if entry.exit_pending else entry.exit,
        )
