"""`doctor --attack`: real agents of a running box try the battery, through the API and with the default profile."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from agentbox.client import BoxClient, RunOutput
from agentbox.client.agent_calls import Agent
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.host.doctor import bundle
from agentbox.host.doctor.planted import planted_objects
from agentbox.host.doctor.reviewed import reviewed
from agentbox.host.doctor.row import Row, Scorecard
from agentbox.plan.model import Plan
from agentbox.sandbox.attacks.catalogue import LINES
from agentbox.sandbox.attacks.line import ABSENT, MOST, OFF, PASSED, Facts, Line, Neighbour
from agentbox.sandbox.attacks.streams import FORGED_CODE

PROFILE: Final = "sandboxed"
_TOLD_SECONDS: Final = 20.0
_RUN_SECONDS: Final = 240.0
_PAUSE: Final = 0.1
_KEPT: Final = 1 << 20  # bytes of output asked for, of each stream


def facts_of(plan: Plan, paths: Paths) -> Facts:
    """What there is to aim at in a box of that plan."""
    secrets = (
        *(paths.api_key, paths.token("supervisor"), paths.token("agent-host"), paths.token("gateway")),
        *(paths.supervisor_auth, paths.boot_record, paths.sentinel, paths.slot("orchestrator") / "agents.db"),
        *(paths.mounted_secrets / name for name in plan.secrets),
    )
    folders = (paths.state, paths.state_secrets, paths.run, paths.branches, paths.logs, paths.tmp)
    return Facts(
        secrets=tuple(map(str, secrets)), folders=("/", *map(str, folders)),
        sockets=(str(paths.supervisor_socket), str(paths.agent_host_socket)), writable=str(paths.state),
        ports=(plan.api.port, plan.observability.metrics_port), workspace=str(paths.workspace),
        providers=tuple(name for name, table in plan.providers.items() if table["enabled"]),
        limits={name: int(plan.limits[name]) for name in MOST if plan.limits.get(name)},
    )  # fmt: skip


@dataclass(frozen=True)
class Attacker:
    """Runs lines as agents of one box."""

    client: BoxClient
    archive: bytes

    def run(self, facts: Facts, *names: str, limits: Mapping[str, int] = MappingProxyType({})) -> RunOutput:
        """An agent that tries those lines, none = all that share one; returns when it has ended."""
        spec = {**self._spec("attacker", (json.dumps(facts.to_json()), *names)), "limits": dict(limits)}
        return self.client.agents.run_once(spec, stdin=self.archive, timeout_s=_RUN_SECONDS, max_output=_KEPT)

    def lent(self) -> str:
        """The token of an agent that gave it away and has ended; "" where it had none."""
        ran = self.client.agents.run_once(self._spec("lender", ("lend",)), stdin=self.archive, timeout_s=_TOLD_SECONDS)
        return ran.stdout.decode().strip() if ran.exit.code == 0 else ""

    def review(self, facts: Facts, name: str) -> str:
        """The reply of an agent that plants something in its branch: what a review of it would take."""
        spec = {**self._spec("planter", (json.dumps(facts.to_json()), name)), "stdin": "pipe"}
        agent, said = self.client.agents.spawn(spec, input=self.archive), b""
        for item in self.client.agents.stream(agent.agent_id):
            said += item.data if item.kind == "stdout" else b""
            if item.kind == "exit":
                break
        reply = dict(_replies(said)).get(name, "nothing: it did not come so far")
        return reviewed(self.client, agent.agent_id) if reply == "planted" else reply

    def objects(self, facts: Facts, name: str) -> str:
        """The reply of an agent whose borrowed git objects another one, which writes the workspace, makes a link."""
        spec = {**self._spec("planter", (json.dumps(facts.to_json()), name)), "workspace": "direct"}

        def plant() -> str:
            ran = self.client.agents.run_once(spec, stdin=self.archive, timeout_s=_TOLD_SECONDS)
            return dict(_replies(ran.stdout)).get(name, "nothing: it did not come so far")

        return planted_objects(self.client, self._spec("reader", ()), facts, plant)

    def in_flight(self, facts: Facts, name: str) -> str:
        """The reply of an agent that has a connection open with the token of another, which is ended meanwhile."""
        lender = self.client.agents.spawn({**self._spec("lender", ("stay",)), "stdin": "pipe"}, input=self.archive)
        lent = replace(facts, lent_token=self._first_line(lender).strip())
        spec = {**self._spec("borrower", (json.dumps(lent.to_json()), name)), "stdin": "pipe"}
        borrower, said, ended = self.client.agents.spawn(spec, input=self.archive), b"", False
        for item in self.client.agents.stream(borrower.agent_id):
            said += item.data if item.kind == "stdout" else b""
            if not ended and (b"\n" in said or item.kind == "exit"):
                self.client.agents.terminate(lender.agent_id, lender.generation, grace_s=0)
                ended = True
            if item.kind == "exit":
                break
        return dict(_replies(said)).get(name, "nothing: it did not come so far")

    def kept(self, facts: Facts, name: str) -> int:
        """Bytes that the box keeps of the larger stream of an agent which tries that line, once it has ended."""
        spec = {**self._spec("flooder", (json.dumps(facts.to_json()), name)), "stdin": "pipe"}
        agent, held = self.client.agents.spawn(spec, input=self.archive), {"stdout": 0, "stderr": 0}
        until = time.monotonic() + _RUN_SECONDS
        while self.client.agents.get(agent.agent_id).exit is None and time.monotonic() < until:
            time.sleep(_PAUSE)
        for item in self.client.agents.stream(agent.agent_id, follow=False):
            if item.kind in held:
                held[item.kind] += len(item.data)
        return max(held.values())

    @contextmanager
    def neighbour(self) -> Iterator[Neighbour]:
        """An agent that holds still until the end. Raises AgentboxError when it does not say where it is."""
        spec = {**self._spec("attacker", ("neighbour",)), "stdin": "pipe"}
        started = self.client.agents.spawn(spec, input=self.archive)
        try:
            yield self._told(started)
        finally:
            self.client.agents.terminate(started.agent_id, started.generation, grace_s=0)

    def _told(self, agent: Agent) -> Neighbour:
        return Neighbour(**{**json.loads(self._first_line(agent)), "agent_id": agent.agent_id})

    def _first_line(self, agent: Agent) -> str:
        """Raises AgentboxError when it ends, or says nothing for too long."""
        until, said = time.monotonic() + _TOLD_SECONDS, b""
        for item in self.client.agents.stream(agent.agent_id):
            said += item.data if item.kind in ("stdout", "stderr") else b""
            if item.kind == "stdout" and b"\n" in said:
                return said.decode()
            if item.kind == "exit" or time.monotonic() > until:
                break
        raise AgentboxError(
            f"cannot begin: the agent beside the attacker did not start\n{said.decode(errors='replace')}"
        )

    def _spec(self, name: str, words: Iterable[str]) -> dict[str, Any]:
        return {"name": f"doctor-{name}", "argv": bundle.argv(*words), "profile": PROFILE}


def attack(client: BoxClient, facts: Facts, lines: Iterable[Line] = LINES) -> Scorecard:
    """Every line, in order. Raises AgentboxError when no agent can be started or the box does not answer."""
    attacker, asked = Attacker(client, bundle.archive()), tuple(lines)
    with attacker.neighbour() as beside:
        aimed = replace(facts, neighbour=beside, ended_token=attacker.lent())
        shared = tuple(line for line in asked if not line.alone)
        replies = dict(_replies(attacker.run(aimed, *(line.name for line in shared)).stdout)) if shared else {}
        for line in asked:
            if line.name == "review.planted":
                replies[line.name] = attacker.review(aimed, line.name)
            elif line.name == "review.planted-objects":
                replies[line.name] = attacker.objects(aimed, line.name)
            elif line.name == "door.in-flight":
                replies[line.name] = attacker.in_flight(aimed, line.name)
            elif line.name == "streams.flood":
                kept = attacker.kept(aimed, line.name)
                replies[line.name] = (
                    "kept within bounds" if 0 < kept < aimed.just_over("stdout") else f"{PASSED}: {kept} bytes are kept"
                )
            elif line.alone:
                told = aimed.lowered(line.lower)
                limits = {name: told.limits[name] for name in line.lower}
                replies[line.name] = _alone(line, attacker.run(told, line.name, limits=limits))
    titles = {"attack": "what an agent tries, and what stops it"}
    return Scorecard("doctor --attack", titles, tuple(judged(line, replies) for line in asked), strict=True)


def _replies(said: bytes) -> Iterator[tuple[str, str]]:
    for text in said.decode(errors="replace").splitlines():
        try:
            found = json.loads(text)
            yield found["line"], str(found["reply"])
        except (ValueError, KeyError, TypeError):
            continue


def _alone(line: Line, ran: RunOutput) -> str:
    """The reply of an agent that tried one line and may have been ended for it."""
    if line.name == "streams.forged":
        own = (ran.exit.reason, ran.exit.code) == ("exit", FORGED_CODE)
        return "its own exit code" if own else f"{PASSED}: the box says {ran.exit.reason} {ran.exit.code}"
    if ran.exit.reason == "limit":
        return "ended: limit"
    said = dict(_replies(ran.stdout)).get(line.name)
    return said or f"ended: {ran.exit.reason} {ran.exit.signal or ran.exit.code}"


def judged(line: Line, replies: Mapping[str, str]) -> Row:
    """The row of one line: good when a layer of its own stopped it, bad when nothing did."""
    row = _judged(line, replies)
    return replace(row, said=f"{row.said}  [edition {line.since}]") if line.since > 1 else row


def _judged(line: Line, replies: Mapping[str, str]) -> Row:
    reply = replies.get(line.name, "nothing: the attacker did not come so far")
    layer = line.answers.get(reply, "")
    facts = {"reply": reply, "layer": layer, "tests": list(line.tests), "since": line.since}
    if layer:
        return Row(
            check="attack", subject=line.name, state="good", said=f"{line.title}: {reply} from {layer}", facts=facts
        )
    if reply.startswith(PASSED):
        return Row(check="attack", subject=line.name, state="bad", said=f"NOT STOPPED: an agent {line.title} ({reply})", facts=facts,
                   advice="Do not give this box to agents that you do not trust. docs/security.md says how to report it.")  # fmt: skip
    if reply.startswith(ABSENT + OFF):
        said = f"{line.title}: nothing to attack, {reply.removeprefix(ABSENT + OFF)}"
        return Row(check="attack", subject=line.name, state="note", said=said, facts=facts)
    if reply.startswith(ABSENT):
        said = f"not there yet: {line.title}: {reply.removeprefix(ABSENT)}"
        return Row(check="attack", subject=line.name, state="unknown", said=said, facts=facts,
                   advice="Nothing was shown: what it is aimed at is not in this box.")  # fmt: skip
    said = (
        f"{line.title}: got {reply}, which none of its layers gives ({', '.join(sorted(set(line.answers.values())))})"
    )
    return Row(check="attack", subject=line.name, state="unknown", said=said, facts=facts,
               advice="Something else may have been in the way; look before you rely on it.")  # fmt: skip
