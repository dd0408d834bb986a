# Written by tools/sync_client.py from async_client/agents.py.
"""Agents of a box."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentbox.client import agent_calls as requests
from agentbox.client.agent_calls import Agent, AgentExit, RunOutput
from agentbox.client.sync.api_caller import ApiCaller
from agentbox.client.task_call import parse_log_item

if TYPE_CHECKING:
    from agentbox.client.records import LogItem
    from agentbox.client.sync.attach import Attached


class AgentsClient:
    """Agents of a box. A spec is an AgentSpec in JSON. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: ApiCaller) -> None:
        self._box = box

    def spawn(
        self, spec: Mapping[str, Any], *, request_id: str = "", input: bytes | None = None
    ) -> Agent:
        """Starts an agent, or returns the one started by the same `request_id`. `input` is the
        complete stdin of a piped agent."""
        return Agent.from_wire(
            (self._box.send(requests.spawn_agent(spec, request_id, input))).json()
        )

    def run_once(
        self,
        spec: Mapping[str, Any],
        *,
        request_id: str = "",
        stdin: bytes = b"",
        timeout_s: float = 600,
        max_output: int = 1 << 20,
    ) -> RunOutput:
        """Runs a program until it exits."""
        call = requests.run_once(spec, request_id, stdin, timeout_s, max_output)
        response = self._box.send(call, wait_s=timeout_s + requests.EXTRA_WAIT_SECONDS)
        return RunOutput.from_wire(response.json())

    def list(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        parent_id: str | None = None,
        label: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[list[Agent], str | None]:
        """A page of agents in order of id, and the next cursor."""
        call = requests.list_agents(
            limit, cursor, state=state, name=name, parent_id=parent_id, label=label
        )
        page = (self._box.send(call)).json()
        return [Agent.from_wire(item) for item in page["items"]], page["next_cursor"]

    def get(self, agent_id: str) -> Agent:
        """One agent."""
        return Agent.from_wire((self._box.send(requests.get_agent(agent_id))).json())

    def signal(self, agent_id: str, generation: int, signal: str) -> None:
        """INT, TERM, HUP, USR1 or USR2 to the program; STOP or CONT to its process tree."""
        self._box.send(requests.signal_agent(agent_id, generation, signal))

    def revoke(self, agent_id: str, grant_id: str) -> Agent:
        """Revokes a grant permanently; returns the updated agent."""
        return Agent.from_wire((self._box.send(requests.revoke_grant(agent_id, grant_id))).json())

    def terminate(
        self, agent_id: str, generation: int, *, grace_s: float | None = None
    ) -> AgentExit:
        """Terminates the process tree; returns its exit. `grace_s`: None uses the box's grace, at
        most 60 s."""
        call = requests.terminate_agent(agent_id, generation, grace_s)
        wait = (60 if grace_s is None else grace_s) + requests.EXTRA_WAIT_SECONDS
        return AgentExit.from_wire((self._box.send(call, wait_s=wait)).json())

    def stream(
        self, agent_id: str, *, since: int = 0, follow: bool = True, reconnect_timeout: float = 60.0
    ) -> Iterator["LogItem"]:
        """Output and lifecycle of an agent after the cursor `since`. Reconnects for up to
        `reconnect_timeout` seconds."""
        query = {"follow": str(follow).lower()}
        start = str(since) if since else ""
        events = self._box.stream(
            "stream_agent",
            {"id": agent_id},
            query=query,
            since=start,
            reconnect_timeout=reconnect_timeout,
        )
        for event in events:
            yield parse_log_item(event)

    @contextmanager
    def attach(self, agent_id: str, generation: int) -> Iterator["Attached"]:
        """Attaches to the agent's pipes and detaches at the end. ApiError 409 if another client is
        attached."""
        attached = self._box.attach(agent_id, generation)
        try:
            yield attached
        finally:
            attached.close()
