"""One-shot runs: input in, output and exit out, nothing left behind."""

import asyncio
from dataclasses import replace

import structlog

from agentbox.agents.admission.admitting import Asker
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.table import Table
from agentbox.agents.runs import exits
from agentbox.agents.runs.capture import Capture
from agentbox.agents.runs.life import Life
from agentbox.agents.streams.log import StreamLog
from agentbox.agents.streams.reader import Reader
from agentbox.contracts.orchestrator import MOST_OUTPUT, AgentSpec, RunResult
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.slot_errors import ValidationError

log = structlog.get_logger()
_RESULT = "result.json"


class Runs:
    """A run is an agent of its own; asked for twice under one request id it runs once and answers the same."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._running: dict[tuple[str, str], asyncio.Task[RunResult]] = {}

    async def run(self, spec: AgentSpec, asker: Asker, stdin: bytes, seconds: float, most: int) -> RunResult:
        """Raises what spawning raises. A run that takes longer than `seconds` ends with reason `timeout`.

        Goes on when the caller is cancelled.
        """
        if not 0 <= most <= MOST_OUTPUT:
            detail = f"must be from 0 to {MOST_OUTPUT}"
            raise ValidationError(
                f"cannot take max_output: it {detail}", errors=[{"pointer": "/max_output", "detail": detail}]
            )
        key = (asker.principal, asker.request_id)
        running = self._running.get(key)
        if running is None:
            running = asyncio.create_task(self._run(_one_shot(spec, stdin, seconds), asker, stdin, Capture(most)))
            self._running[key] = running
            running.add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(running)

    async def _run(self, spec: AgentSpec, asker: Asker, stdin: bytes, capture: Capture) -> RunResult:
        handle = await self._table.spawn(spec, asker, once=True, capture=capture, stdin=stdin or None)
        entry = self._table.get(handle.agent_id)
        life = self._table.lives.get(handle.agent_id)
        if capture.life is None:
            return await self._earlier(entry, life)
        await asyncio.shield(capture.life.done)
        result = RunResult(
            exit=entry.exit or exits.lost(), stdout=capture.stdout, stderr=capture.stderr, truncated=capture.truncated,
            isolation=entry.isolation,
        )  # fmt: skip
        _store(capture.life.stream, result)
        return result

    async def _earlier(self, entry: Entry, life: Life | None) -> RunResult:
        """Of a run that an earlier process, or another kind of call, began: its stored answer, else what was kept."""
        if life is not None:
            await asyncio.shield(life.done)
        stream = self._table.streams[entry.agent_id]
        if stored := _stored(stream):
            return stored
        items = Reader(stream).batch(stream.size + 1)
        output = {kind: b"".join(one.data for one in items if one.kind == kind) for kind in ("stdout", "stderr")}
        cut = any(stream.kinds[kind].floor.items for kind in ("stdout", "stderr"))
        return RunResult(
            exit=entry.exit or exits.lost(), stdout=output["stdout"], stderr=output["stderr"], truncated=cut,
            isolation=entry.isolation,
        )  # fmt: skip


def _one_shot(spec: AgentSpec, stdin: bytes, seconds: float) -> AgentSpec:
    asked = spec.limits.wall_seconds
    wall = seconds if not asked else min(asked, seconds)
    limits = replace(spec.limits, wall_seconds=wall)
    return replace(spec, stdin="pipe" if stdin else "null", restart="never", limits=limits)


def _store(stream: StreamLog, result: RunResult) -> None:
    """For whoever asks again. A disk that takes none costs only that: the caller of now has the answer."""
    if not stream.folder.exists():
        return
    try:
        replace_json(stream.folder / _RESULT, result.to_wire(), mode=0o600, durable=False)
    except OSError as error:
        log.error("answer of a run is not kept", folder=stream.folder.name, reason=error.strerror)


def _stored(stream: StreamLog) -> RunResult | None:
    """None where there is none that can be read."""
    try:
        found = read_json(stream.folder / _RESULT)
    except (OSError, ValueError) as error:
        log.error("answer of a run is unreadable", folder=stream.folder.name, reason=str(error))
        return None
    return None if found is None else RunResult.from_wire(found)
