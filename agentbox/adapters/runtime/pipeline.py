"""The call pipeline of a slot: observe, deadline, privacy, intent, method, journal."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any, Protocol

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, SlotConfig, SlotName
from agentbox.adapters.runtime.agent_quotas import is_agent
from agentbox.adapters.runtime.deadline_block import DeadlineBlock
from agentbox.adapters.runtime.journal import BestEffortJournal
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.observe import SlotCall, observe_call, outcome_of
from agentbox.adapters.runtime.off import Off
from agentbox.adapters.runtime.spans import NoTracing, Tracing
from agentbox.adapters.runtime.write_gate import WriteGate, WriteTicket
from agentbox.contracts.routes.operation import Operation
from agentbox.contracts.slot_operations import SLOTS
from agentbox.core.canonical import canonical_json
from agentbox.core.deadline import Deadline
from agentbox.core.frozen import frozen_slots
from agentbox.core.records.wire import invalid_value, to_wire
from agentbox.core.slot_errors import (
    AdapterError,
    AdapterTimeout,
    AdapterWriteRejected,
    BackendError,
    SlotUnavailable,
)
from agentbox.manifest.declarations.options import Options
from agentbox.manifest.slot_options import ProcessOptions
from agentbox.policy.redaction.redacting_stream import RedactingStream
from agentbox.policy.redaction.redactor import Redacted, RedactionFailed, Redactor

# Writes of these slots wait for a cut: they end in this program.
PAUSED: frozenset[SlotName] = frozenset({"beads", "pods", "memory", "events"})
CONNECTION_ERRORS = (SlotUnavailable, BackendError, AdapterTimeout)


class InstanceSource(Protocol):
    """Provides the current instance; implemented by the slot's state machine."""

    @property
    def cfg(self) -> SlotConfig[Options]: ...

    @property
    def serving(self) -> Adapter:
        """The instance, for a stream."""
        ...

    def acquire(self) -> AbstractContextManager[Adapter]:
        """Return the instance; it is not closed during the block."""
        ...

    def request_health_check(self) -> None:
        """Check the slot's health now, after a connection error of a call."""
        ...


@frozen_slots
class PipelineDeps:
    """Dependencies of the stages. With `events_required` a call is refused if its intent cannot be
    journalled."""

    metrics: Metrics
    guard: Redactor
    journal: BestEffortJournal
    events_required: bool
    gate: WriteGate = field(default_factory=WriteGate)
    spans: Tracing = field(default_factory=NoTracing)


class Pipeline:
    """The stages around the methods of a slot."""

    def __init__(self, slot: SlotName, source: InstanceSource, deps: PipelineDeps) -> None:
        self._slot = slot
        self._source = source
        self._deps = deps
        resource = SLOTS[slot]
        self._signatures = {name: resource.signature(name) for name in resource.by_name}

    async def call(self, spec: Operation, *args: Any, **kwargs: Any) -> Any:
        """Call a method that returns once."""
        arguments = self._bind(spec, args, kwargs)
        result: Any = None
        failure: AdapterError | None = None
        with self._observe(spec) as call, self._deps.gate.ticket() as ticket:
            try:
                async with self._deadline(spec, arguments):
                    arguments = self._redact(spec, arguments)
                    await self._record_intent(spec, arguments)
                    passed = await self._admit(spec, ticket, arguments)
                    with self._source.acquire() as instance:
                        call.impl, call.reached = instance.impl, not isinstance(instance, Off)
                        result = await getattr(instance, spec.name)(**passed)
            except RedactionFailed as error:  # raised by a streamed body
                failure = self._rejected_error(spec, error)
            except AdapterError as error:
                failure = error
                if isinstance(error, CONNECTION_ERRORS):
                    self._source.request_health_check()
            for value in arguments.values():
                if isinstance(value, RedactingStream):
                    self._count_redactions(spec, value)
            if spec.audit and call.reached:
                if spec.kind == "write" and self._slot in PAUSED:
                    await ticket.enter()  # not yet, if a streamed body failed
                await self._record_write(spec, arguments, result, failure)
            if failure is not None:
                raise failure
        return result

    def stream(
        self, spec: Operation, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> AsyncGenerator[Any]:
        """Call a streaming method. The method is called now; the span ends at the first item."""
        instance = self._source.serving
        iterator = getattr(instance, spec.name)(**self._bind(spec, args, kwargs))
        return self._iterate(spec, instance, iterator)

    async def _iterate(
        self, spec: Operation, instance: Adapter, iterator: Any
    ) -> AsyncGenerator[Any]:
        items = self._deps.metrics.stream_items.labels(self._slot, spec.name)
        try:
            with self._observe(spec) as call:
                call.impl = instance.impl
                first = await anext(iterator, _END)
            if first is _END:
                return
            items.inc()
            yield first
            async for item in iterator:
                items.inc()
                yield item
        finally:
            if (aclose := getattr(iterator, "aclose", None)) is not None:
                await aclose()

    def _bind(
        self, spec: Operation, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        bound = self._signatures[spec.name].bind(None, *args, **kwargs)
        return {name: value for name, value in bound.arguments.items() if name != "self"}

    def _observe(self, spec: Operation) -> AbstractContextManager[SlotCall]:
        return observe_call(
            self._slot, spec.name, self._source.cfg.use, self._deps.spans, self._deps.metrics
        )

    def _deadline(self, spec: Operation, arguments: Mapping[str, Any]) -> DeadlineBlock:
        seconds = spec.deadline_s
        if argument := spec.deadline_from:
            default = self._signatures[spec.name].parameters[argument].default
            value = arguments.get(argument, default)
            grace = ProcessOptions.of(self._source.cfg.options).grace_seconds
            seconds += grace if value is None else value
        deadline = Deadline.after(seconds)
        caller = context.current().deadline
        return DeadlineBlock(
            self._slot, spec.name, deadline if caller is None else min(deadline, caller)
        )

    def _redact(self, spec: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
        if not spec.redact and not spec.identifiers:
            return arguments
        try:
            redaction = self._deps.guard.redact(
                self._slot, spec.name, arguments, spec.redact, spec.identifiers
            )
        except RecursionError:
            raise invalid_value("", "is nested too deeply") from None
        except RedactionFailed as error:
            raise self._rejected_error(spec, error) from error
        self._count_redactions(spec, redaction)
        return {name: self._wrap_body(value) for name, value in redaction.document.items()}

    async def _admit(
        self, spec: Operation, ticket: WriteTicket, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Wait while a cut pauses writes. A streamed body admits its call when it has ended."""
        if spec.kind != "write" or self._slot not in PAUSED:
            return arguments
        streamed = {
            name: ticket.admit_at_end(value)
            for name, value in arguments.items()
            if isinstance(value, AsyncIterable)
        }
        if not streamed:
            await ticket.enter()
        return {**arguments, **streamed}

    def _rejected_error(self, spec: Operation, error: RedactionFailed) -> AdapterWriteRejected:
        return AdapterWriteRejected(
            f"cannot write to {self._slot}: {error}", slot=self._slot, method=spec.name
        )

    def _wrap_body(self, value: Any) -> Any:
        """Redact a streamed body while the adapter reads it."""
        return (
            RedactingStream(self._deps.guard, self._slot, value)
            if isinstance(value, AsyncIterator)
            else value
        )

    def _count_redactions(self, spec: Operation, redaction: Redacted | RedactingStream) -> None:
        context.current().redacted.update(redaction.counts)
        for name, count in redaction.counts.items():
            self._deps.metrics.redactions.labels(self._slot, spec.name, name).inc(count)
        if redaction.failed:
            self._deps.metrics.redaction_failures.labels(self._slot, "soft").inc(redaction.failed)

    async def _record_intent(self, spec: Operation, arguments: Mapping[str, Any]) -> None:
        if spec.audit and is_agent(context.current().principal):
            self._deps.journal.check_agent_writes()
        if not spec.intent or self._deps.journal.is_off:
            return
        event = intent_event(spec, arguments)
        if self._deps.events_required:
            await self._deps.journal.record_required(
                spec.intent, event, agent_id=event.get("agent_id")
            )
        else:
            await self._deps.journal.record(spec.intent, event, agent_id=event.get("agent_id"))

    async def _record_write(
        self,
        spec: Operation,
        arguments: Mapping[str, Any],
        result: Any,
        failure: AdapterError | None,
    ) -> None:
        if spec.name == "claim_next" and result is None and failure is None:
            return  # nothing was written
        data = {
            "slot": self._slot,
            "method": spec.name,
            "id": _id_of(arguments, result),
            "outcome": "ok" if failure is None else outcome_of(failure),
            "args_sha256": hashlib.sha256(canonical_json(_plain(arguments))).hexdigest(),
        }
        session = data["id"] if context.current().opens_session else None
        await self._deps.journal.write_shielded(
            lambda: self._deps.journal.record("slot.write", data, session_id=session)
        )


_END = object()


def intent_event(spec: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event data recorded before an agent is started or ended: names, never arguments or
    environment."""
    if "spec" in arguments:
        agent = arguments["spec"]
        return {
            "method": spec.name,
            "name": agent.name,
            "profile": agent.profile,
            "request_id": arguments["request_id"],
            "parent_id": agent.parent_id,
        }
    handle = arguments["handle"]
    return {"method": spec.name, "agent_id": handle.agent_id, "generation": handle.generation}


def _plain(arguments: Mapping[str, Any]) -> Any:
    """Convert the arguments to JSON data; a streamed body becomes its SHA-256."""
    return to_wire(
        {
            name: value.sha256 if isinstance(value, RedactingStream) else value
            for name, value in arguments.items()
        }
    )


def _id_of(arguments: Mapping[str, Any], result: Any) -> str | None:
    """Return the id of the written object: from the arguments, else from the result (a bead, or a
    claim of one)."""
    for name in ("bead_id", "path", "key"):
        if name in arguments:
            return str(arguments[name])
    if isinstance(result, tuple):
        result = result[0]
    written_id = getattr(getattr(result, "bead", result), "id", None)
    return None if written_id is None else str(written_id)
