"""Which agents that have ended are kept, with their output: their streams and results, and the
programs of sandboxes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentbox.agents.config import HostConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.streams.stream_log import EVENTS, StreamLog


def surplus_agents(host: HostState, streams: Mapping[str, StreamLog]) -> Iterable[str]:
    """Ids of ended agents beyond the retention limits, longest ended first, however long they ran.
    Ancestors of running agents are kept, and those whose result a caller will read."""
    needed = {
        agent.agent_id
        for entry in host.entries.values()
        if not entry.over and host.authorizations.has_all_ancestors(entry)
        for agent in host.authorizations.ancestors(entry)
    }
    ended = [
        agent
        for agent in host.entries.values()
        if agent.over and agent.agent_id not in needed and not streams[agent.agent_id].waiting
    ]
    rows = [
        (agent.agent_id, streams[agent.agent_id].directory_size, agent.spec_size)
        for agent in sorted(ended, key=_ended_at)
    ]
    return select_surplus(rows, host.config)


def select_surplus(ended: Sequence[tuple[str, int, int]], config: HostConfig) -> Iterator[str]:
    """From (id, bytes of output, characters of spec), oldest first, yield the ids to delete so that
    the rest is within all limits."""
    output, specs = sum(row[1] for row in ended), sum(row[2] for row in ended)
    for index, (agent_id, size, spec) in enumerate(ended):
        within_count = len(ended) - index <= config.keep_ended
        if within_count and output <= config.keep_output and specs <= config.keep_specs:
            return
        output, specs = output - size, specs - spec
        yield agent_id


def _ended_at(entry: AgentRecord) -> tuple[float, str]:
    """Unix seconds, then the id as a tie-breaker."""
    return (0.0 if entry.exit is None else entry.exit.at.timestamp(), entry.agent_id)


def retention(entry: AgentRecord) -> tuple[int, int]:
    """Bytes of each output stream, and number of lifecycle items."""
    return entry.limits.stdout or 0, entry.limits.events_kept or EVENTS
