"""What a new generation must show before it is released."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.start import failure_reason
from agentbox.host.engines.base import Engine
from agentbox.host.engines.readiness import query_ready, wait_until_ready
from agentbox.host.engines.state import BoxRecord
from agentbox.host.generations.counted_rows import AGENTS, ROWS

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.generation import GenerationState

_POLL_SECONDS: Final = 0.2
_CLIENT_SECONDS: Final = 60.0


class TrialFailed(Exception):
    """The generation is not good; the text says why."""


def check_generation(
    cli: CliContext,
    engine: Engine,
    record: BoxRecord,
    noted: Mapping[str, Any],
    *,
    trial_seconds: float,
    settle_seconds: float,
) -> dict[str, int]:
    """Waits until the box is ready and compares it with what was noted before the stop. Returns
    the migration of each store. Raises TrialFailed.
    """
    began = time.monotonic()
    result = wait_until_ready(
        engine,
        record,
        trial_seconds,
        lambda seconds, missing: cli.out.redraw(
            f"trial {seconds:.1f} s  missing: {', '.join(missing)}"
        ),
    )
    if not result.ready:
        raise TrialFailed(failure_reason(result))
    known = set(noted.get("degraded", ()))
    _wait_for_parts(record, known, began + trial_seconds)
    from agentbox.client import BoxClient

    try:
        with BoxClient(record.api_url, token=cli.token(record), timeout=_CLIENT_SECONDS) as client:
            state = client.generation.show()
            compare_state(state, noted, partial(hash_of_record, client))
            failure = _try_agent(cli, client)
    except AgentboxError as error:
        raise TrialFailed(f"its test failed: {error.message}") from error
    if failure:
        raise TrialFailed(f"an agent that runs `true` failed: {failure}")
    _stay_ready(record, known, settle_seconds)
    return {name: store.migration for name, store in state.stores.items()}


def _try_agent(cli: CliContext, client: BoxClient) -> str:
    """Why an agent failed; "" if it did not, or if there are no agents in this box."""
    from agentbox.client.errors import ApiError

    try:
        return client.generation.try_agent().reason
    except ApiError as error:
        if error.code != "adapter-disabled":
            raise
        cli.out.note("no agent was tried: the slot orchestrator is off")
        return ""


def compare_state(
    state: GenerationState, noted: Mapping[str, Any], hash_of: Callable[[int], str]
) -> None:
    """`hash_of` a record of the journal, "" if there is none. Raises TrialFailed if something that
    was there is not.
    """
    for name, before in noted.get("stores", {}).items():
        rows = before.get("rows")
        if name not in ROWS or name == AGENTS or rows is None:
            continue
        found = state.stores[name].rows if name in state.stores else None
        if found is None or found < rows:
            raise TrialFailed(f"{ROWS[name][1]} before it: {rows}, now: {found or 0}")
    seq, digest = noted.get("journal_seq", -1), noted.get("journal_hash", "")
    if seq < 0:
        return
    if state.journal_seq < seq:
        raise TrialFailed(f"the journal ends at {state.journal_seq}, and reached {seq} before it")
    if hash_of(seq) != digest:
        raise TrialFailed(f"record {seq} of the journal is not the one from before it")


def hash_of_record(client: BoxClient, seq: int) -> str:
    """The hash of that record of the journal, "" if there is none."""
    events = client.events.read(since=seq - 1, limit=1).events
    return events[0].hash if events and events[0].seq == seq else ""


def _wait_for_parts(record: BoxRecord, known: set[str], deadline: float) -> None:
    """A box is ready without its optional slots. Those that were not degraded before must work:
    raises TrialFailed with the ones that do not at the deadline.
    """
    while lost := set(query_ready(record.api_url)[1].get("degraded", ())) - known:
        if time.monotonic() > deadline:
            raise TrialFailed(f"what worked before it does not: {', '.join(sorted(lost))}")
        time.sleep(_POLL_SECONDS)


def _stay_ready(record: BoxRecord, known: set[str], seconds: float) -> None:
    """Raises TrialFailed if `/ready` is not 200, or has a newly degraded part, at one of the
    polls.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status, verdict = query_ready(record.api_url)
        if status != 200:
            missing = ", ".join(verdict.get("missing", [])) or "no answer"
            raise TrialFailed(f"it did not stay ready: {missing}")
        if lost := set(verdict.get("degraded", ())) - known:
            raise TrialFailed(f"it did not stay whole: {', '.join(sorted(lost))}")
        time.sleep(_POLL_SECONDS)
