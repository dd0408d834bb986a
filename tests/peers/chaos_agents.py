"""Agents are requested while the bridge behind the orchestrator is killed: which ran, how often,
and what the callers were told. Every agent writes a line into a file named after its request. A
refused request is repeated under its id."""

import asyncio
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from agentbox_testkit.contracts.orchestrator_lab import running_pids
from chaos import Load, Outcome
from support.api_box import SLOTS as LOCAL
from support.api_box import ApiBox
from support.bridge_box import bridge

from agentbox.adapters.runtime.adapter import SLOTS
from agentbox.client import AsyncBoxClient
from agentbox.plan.model import SlotPlan
from agentbox.sandbox.launcher import tree

EXIT = 7
_FOLDER = "starts"  # in the workspace
_RUN_SECONDS = 20.0
_LOOK_SECONDS = 0.05
_PATIENCE = 20.0
_TYPED = {"slot-unavailable", "adapter-timeout"}


def over_bridge(prefix: Path) -> ApiBox:
    """A box whose orchestrator is required, and a child of the API."""
    slots = {name: SlotPlan(use="off", required=False) for name in SLOTS} | {
        "events": LOCAL["events"]
    }
    slots["orchestrator"] = SlotPlan(
        use="external-stdio", required=True, options={"command": bridge()}
    )
    box = ApiBox(prefix, orchestrator=False, slots=slots)
    (box.paths.workspace / _FOLDER).mkdir()
    return box


class Bridge:
    """The child of a box: the box itself starts the next."""

    def __init__(self, box: ApiBox) -> None:
        self._box = box

    def kill(self) -> None:
        """SIGKILL. Raises ValueError where the box has not one child."""
        assert self._box.process is not None
        below = {row.pid for row in tree.descendants(tree.scan(), [self._box.process.pid])}
        (child,) = [pid for pid in running_pids("agentbox.agents.bridge") if pid in below]
        os.kill(child, signal.SIGKILL)

    def start(self) -> None:
        """No request has to succeed."""


class Agents:
    """Every second request is an agent whose end is awaited; the others are runs. Their results are
    stored here."""

    def __init__(self, box: ApiBox) -> None:
        self.load = Load("orchestrator", self._write, self._names, again=True)
        self.started: dict[str, str] = {}  # id of the agent, by the request that was acknowledged
        self.ends: dict[str, str] = {}  # reason of the exit, by request
        self.doubled: list[str] = []
        self._box = box

    def processes(self) -> Counter[str]:
        """How many each request started."""
        files = (self._box.paths.workspace / _FOLDER).iterdir()
        return Counter({file.name: len(file.read_text().splitlines()) for file in files})

    def wrong(self, out: Outcome) -> list[str]:
        """A sentence for each promise that was broken, those of every peer among them."""
        said = out.wrong()
        ran, unknown = self.processes(), self.started.keys() - out.found
        if twice := [name for name, count in ran.items() if count > 1]:
            said.append(f"{len(twice)} requests started more than one process")
        if self.doubled:
            said.append(f"{len(self.doubled)} requests were told of in two ways: {self.doubled[0]}")
        if idle := [
            name for name, reason in self.ends.items() if reason == "exit" and not ran[name]
        ]:
            said.append(f"{len(idle)} agents have an exit and never ran")
        if unknown:
            said.append(f"of {len(unknown)} acknowledged agents nobody knows the end")
        if odd := set(out.refused) - _TYPED:
            said.append(f"refused with {sorted(odd)}")
        return said

    async def _write(self, client: AsyncBoxClient, name: str) -> None:
        script = f"echo $$ >> {_FOLDER}/{name}; echo {name}; sleep 0.2; exit {EXIT}"
        spec = {
            "name": name,
            "argv": ["sh", "-c", script],
            "profile": "sandboxed",
            "workspace": "direct",
        }
        if int(name, 16) % 2:
            done = await client.agents.run_once(spec, request_id=name, timeout_s=_RUN_SECONDS)
            if done.exit.reason != "lost" and done.stdout != f"{name}\n".encode():
                self.doubled.append(f"{name} printed {done.stdout!r}")
            self._end(name, done.exit)
            return
        made = await client.agents.spawn(spec, request_id=name)
        if self.started.setdefault(name, made.agent_id) != made.agent_id:
            self.doubled.append(f"{name} is {self.started[name]} and {made.agent_id}")
        await self._until_over(client, name)

    async def _until_over(self, client: AsyncBoxClient, name: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while (found := await client.agents.get(self.started[name])).exit is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} does not end: {found}")
            await asyncio.sleep(_LOOK_SECONDS)
        self._end(name, found.exit)

    def _end(self, name: str, end: Any) -> None:
        if (end.reason, end.code) not in (("exit", EXIT), ("lost", None)):
            self.doubled.append(f"{name} ended as {end}")
        if self.ends.setdefault(name, end.reason) != end.reason:
            self.doubled.append(f"{name} was {self.ends[name]} and is {end.reason}")

    async def _names(self, client: AsyncBoxClient) -> set[str]:
        """Their ends are known to every caller, and in the journal, once."""
        for name in self.started.keys() - self.ends.keys():
            await self._until_over(client, name)
        deadline = time.monotonic() + _PATIENCE
        while (
            self.ends.keys() - (told := await _told(client)).keys() and time.monotonic() < deadline
        ):
            await asyncio.sleep(_LOOK_SECONDS)
        for name, reasons in told.items():
            if len(reasons) > 1 or self.ends.get(name, reasons[0]) != reasons[0]:
                self.doubled.append(f"the journal ends {name} as {reasons}")
        return self.ends.keys() & told.keys()


async def _told(client: AsyncBoxClient) -> dict[str, list[str]]:
    """Reasons of the ends that the journal has, by the name of the agent."""
    found: dict[str, list[str]] = {}
    since, head = -1, 0
    while since < head:
        query = {"since": since, "limit": 1000, "types": "agent.exited,agent.lost"}
        batch = await client.call("read_events", query=query)
        since, head = batch["next_since"], batch["head_seq"]
        for event in batch["events"]:
            found.setdefault(event["data"]["name"], []).append(event["data"]["exit"]["reason"])
    return found
