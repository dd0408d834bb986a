"""One-shot runs: take input, return output and exit."""

import asyncio
from dataclasses import replace

import structlog

from agentbox.agents.admission.admit import Requester
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.runs import exits
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.runs.capture import OutputCapture
from agentbox.agents.streams.reader import ItemReader
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import MAX_OUTPUT, AgentSpec, RunResult
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.slot_errors import ValidationError

log = structlog.get_logger()
_RESULT = "result.json"


class OneShotRuns:
    """A run is an agent of its own; repeated requests with one id return the same result."""

    def __init__(self, registry: AgentRegistry) -> None:
        self._registry = registry
        self._running: dict[tuple[str, str], asyncio.Task[RunResult]] = {}

    async def run(
        self, spec: AgentSpec, requester: Requester, stdin: bytes, seconds: float, max_output: int
    ) -> RunResult:
        """Raises what spawning raises. A run that takes longer than `seconds` ends with reason
        `timeout`.

        Continues if the caller is cancelled.
        """
        if not 0 <= max_output <= MAX_OUTPUT:
            detail = f"must be from 0 to {MAX_OUTPUT}"
            raise ValidationError(
                f"invalid max_output: {detail}",
                errors=[{"pointer": "/max_output", "detail": detail}],
            )
        key = (requester.principal, requester.request_id)
        running = self._running.get(key)
        if running is None:
            running = asyncio.create_task(
                self._run(
                    _one_shot_spec(spec, stdin, seconds),
                    requester,
                    stdin,
                    max_output,
                )
            )
            self._running[key] = running
            running.add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(running)

    async def _run(
        self, spec: AgentSpec, requester: Requester, stdin: bytes, max_output: int
    ) -> RunResult:
        # Empty if an earlier request started the agent.
        created: list[tuple[AgentRunner, OutputCapture]] = []

        def on_created(runner: AgentRunner) -> None:
            capture = OutputCapture(max_output, runner.stream.directory)
            runner.output.on_output = capture.add
            created.append((runner, capture))

        handle = await self._registry.spawn(
            spec, requester, once=True, on_created=on_created, stdin=stdin or None
        )
        entry = self._registry.get(handle.agent_id)
        if not created:
            return await self._earlier_result(entry, self._registry.runners.get(handle.agent_id))
        ((runner, capture),) = created
        await asyncio.shield(runner.done)
        result = RunResult(
            exit=entry.exit or exits.lost_exit(),
            stdout=capture.stdout,
            stderr=capture.stderr,
            truncated=capture.truncated,
            isolation=entry.isolation,
        )
        _save_result(runner.stream, result)
        capture.discard()
        runner.stream.recount()
        return result

    async def _earlier_result(self, entry: AgentRecord, runner: AgentRunner | None) -> RunResult:
        """Result of a run that an earlier process or another call started: the stored result, else
        the stored output."""
        if runner is not None:
            await asyncio.shield(runner.done)
        stream = self._registry.streams[entry.agent_id]
        if stored := _load_result(stream):
            return stored
        items = ItemReader(stream).batch(stream.size + 1)
        output = {
            kind: b"".join(item.data for item in items if item.kind == kind)
            for kind in ("stdout", "stderr")
        }
        truncated = any(stream.kinds[kind].floor.items for kind in ("stdout", "stderr"))
        return RunResult(
            exit=entry.exit or exits.lost_exit(),
            stdout=output["stdout"],
            stderr=output["stderr"],
            truncated=truncated,
            isolation=entry.isolation,
        )


def _one_shot_spec(spec: AgentSpec, stdin: bytes, seconds: float) -> AgentSpec:
    limit = spec.limits.wall_seconds
    wall = seconds if not limit else min(limit, seconds)
    limits = replace(spec.limits, wall_seconds=wall)
    return replace(spec, stdin="pipe" if stdin else "null", restart="never", limits=limits)


def _save_result(stream: StreamLog, result: RunResult) -> None:
    """Store the result for repeated requests. If the disk fails, only these are affected."""
    if not stream.directory.exists():
        return
    try:
        replace_json(stream.directory / _RESULT, result.to_wire(), mode=0o600, durable=False)
    except OSError as error:
        log.error(
            "cannot store the result of a run",
            directory=stream.directory.name,
            reason=error.strerror,
        )


def _load_result(stream: StreamLog) -> RunResult | None:
    """None if there is none, or it is unreadable."""
    try:
        data = read_json(stream.directory / _RESULT)
    except (OSError, ValueError) as error:
        log.error(
            "cannot read the result of a run", directory=stream.directory.name, reason=str(error)
        )
        return None
    return None if data is None else RunResult.from_wire(data)
