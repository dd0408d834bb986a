"""`doctor --attack`: agents of a running box, started through the API with the default profile, run
the attack suite."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from agentbox.client import BoxClient
from agentbox.contracts.orchestrator import AgentInfo, RunResult
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.host.doctor import attack_archive
from agentbox.host.doctor.attack_results import case_result, parse_replies, single_reply
from agentbox.host.doctor.check_result import DoctorReport
from agentbox.host.doctor.planted_objects import try_planted_objects
from agentbox.host.doctor.planted_review import check_review
from agentbox.plan.model import Plan
from agentbox.sandbox.attacks.case import (
    DEFAULT_LIMITS,
    PASSED,
    AttackCase,
    TargetInfo,
    VictimAgent,
)
from agentbox.sandbox.attacks.catalogue import CASES

PROFILE: Final = "sandboxed"
_REPLY_SECONDS: Final = 20.0
_RUN_SECONDS: Final = 240.0
_POLL_SECONDS: Final = 0.1
_MAX_OUTPUT: Final = 1 << 20  # bytes requested of each output stream


def target_info(plan: Plan, paths: Paths) -> TargetInfo:
    """The targets in a box of this plan."""
    secrets = (
        *(
            paths.api_key,
            paths.token("supervisor"),
            paths.token("agent-host"),
            paths.token("gateway"),
        ),
        *(
            paths.supervisor_auth,
            paths.boot_record,
            paths.sentinel,
            paths.slot("orchestrator") / "agents.db",
        ),
        *(paths.mounted_secrets / name for name in plan.secrets),
    )
    directories = (
        paths.state,
        paths.state_secrets,
        paths.run,
        paths.branches,
        paths.logs,
        paths.tmp,
    )
    return TargetInfo(
        secrets=tuple(map(str, secrets)),
        folders=("/", *map(str, directories)),
        sockets=(str(paths.supervisor_socket), str(paths.agent_host_socket)),
        writable=str(paths.state),
        ports=(plan.api.port, plan.observability.metrics_port),
        workspace=str(paths.workspace),
        providers=tuple(name for name, provider in plan.providers.items() if provider.enabled),
        limits={name: int(getattr(plan.limits, name)) for name in DEFAULT_LIMITS},
    )


@dataclass(frozen=True)
class AttackRunner:
    """Runs attack cases as agents of one box."""

    client: BoxClient
    archive: bytes

    def run(
        self, target: TargetInfo, *names: str, limits: Mapping[str, int] = MappingProxyType({})
    ) -> RunResult:
        """Runs the named cases in one agent (none: all shared cases); returns when it has ended."""
        spec = {
            **self._spec("attacker", (json.dumps(target.to_json()), *names)),
            "limits": dict(limits),
        }
        return self.client.agents.run_once(
            spec, stdin=self.archive, timeout_s=_RUN_SECONDS, max_output=_MAX_OUTPUT
        )

    def ended_token(self) -> str:
        """The token of an agent that printed it and has ended; "" if it had none."""
        output = self.client.agents.run_once(
            self._spec("lender", ("print-token",)), stdin=self.archive, timeout_s=_REPLY_SECONDS
        )
        return output.stdout.decode().strip() if output.exit.code == 0 else ""

    def attack_review(self, target: TargetInfo, name: str) -> str:
        """The reply of an agent that plants files in its branch: which of them a review would
        accept."""
        spec = {**self._spec("planter", (json.dumps(target.to_json()), name)), "stdin": "pipe"}
        agent, output = self.client.agents.spawn(spec, input=self.archive), b""
        for item in self.client.agents.stream(agent.agent_id):
            output += item.data if item.kind == "stdout" else b""
            if item.kind == "exit":
                break
        reply = dict(parse_replies(output)).get(name, "nothing: it was not reached")
        return check_review(self.client, agent.agent_id) if reply == "planted" else reply

    def attack_objects(self, target: TargetInfo, name: str) -> str:
        """The reply of an agent whose shared git objects are replaced with a link by another agent
        that writes the workspace."""
        spec = {
            **self._spec("planter", (json.dumps(target.to_json()), name)),
            "workspace": "direct",
        }

        def plant() -> str:
            output = self.client.agents.run_once(spec, stdin=self.archive, timeout_s=_REPLY_SECONDS)
            return dict(parse_replies(output.stdout)).get(name, "nothing: it was not reached")

        return try_planted_objects(self.client, self._spec("reader", ()), target, plant)

    def attack_connection(self, target: TargetInfo, name: str) -> str:
        """The reply of an agent with a connection that uses the token of another agent, which is
        terminated meanwhile."""
        lender = self.client.agents.spawn(
            {**self._spec("lender", ("hold-token",)), "stdin": "pipe"}, input=self.archive
        )
        lent_target = replace(target, lent_token=self._first_line(lender).strip())
        spec = {
            **self._spec("borrower", (json.dumps(lent_target.to_json()), name)),
            "stdin": "pipe",
        }
        borrower, output, terminated = (
            self.client.agents.spawn(spec, input=self.archive),
            b"",
            False,
        )
        for item in self.client.agents.stream(borrower.agent_id):
            output += item.data if item.kind == "stdout" else b""
            if not terminated and (b"\n" in output or item.kind == "exit"):
                self.client.agents.terminate(lender.agent_id, lender.generation, grace_s=0)
                terminated = True
            if item.kind == "exit":
                break
        return dict(parse_replies(output)).get(name, "nothing: it was not reached")

    def stored_bytes(self, target: TargetInfo, name: str) -> int:
        """Bytes that the box stores of the larger output stream of an agent that runs the case."""
        spec = {**self._spec("flooder", (json.dumps(target.to_json()), name)), "stdin": "pipe"}
        agent, sizes = (
            self.client.agents.spawn(spec, input=self.archive),
            {"stdout": 0, "stderr": 0},
        )
        deadline = time.monotonic() + _RUN_SECONDS
        while self.client.agents.get(agent.agent_id).exit is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        for item in self.client.agents.stream(agent.agent_id, follow=False):
            if item.kind in sizes:
                sizes[item.kind] += len(item.data)
        return max(sizes.values())

    @contextmanager
    def victim(self) -> Iterator[VictimAgent]:
        """Runs an idle agent as the victim. Raises AgentboxError if it does not report its
        addresses."""
        spec = {**self._spec("attacker", ("victim",)), "stdin": "pipe"}
        agent = self.client.agents.spawn(spec, input=self.archive)
        try:
            yield self._read_victim(agent)
        finally:
            self.client.agents.terminate(agent.agent_id, agent.generation, grace_s=0)

    def _read_victim(self, agent: AgentInfo) -> VictimAgent:
        return VictimAgent(**{**json.loads(self._first_line(agent)), "agent_id": agent.agent_id})

    def _first_line(self, agent: AgentInfo) -> str:
        """Reads the first line of output. Raises AgentboxError when the agent ends or times out."""
        deadline, output = time.monotonic() + _REPLY_SECONDS, b""
        for item in self.client.agents.stream(agent.agent_id):
            output += item.data if item.kind in ("stdout", "stderr") else b""
            if item.kind == "stdout" and b"\n" in output:
                return output.decode()
            if item.kind == "exit" or time.monotonic() > deadline:
                break
        raise AgentboxError(
            "cannot run the attacks: the victim agent did not "
            f"start\n{output.decode(errors='replace')}"
        )

    def _spec(self, name: str, arguments: Iterable[str]) -> dict[str, Any]:
        return {
            "name": f"doctor-{name}",
            "argv": attack_archive.attack_argv(*arguments),
            "profile": PROFILE,
        }


def run_attack(
    client: BoxClient, base_target: TargetInfo, cases: Iterable[AttackCase] = CASES
) -> DoctorReport:
    """Runs all cases in order. Raises AgentboxError if no agent starts or the box does not
    respond."""
    runner, selected = AttackRunner(client, attack_archive.build_archive()), tuple(cases)
    with runner.victim() as victim:
        target = replace(base_target, neighbour=victim, ended_token=runner.ended_token())
        shared = tuple(case for case in selected if not case.isolated)
        replies = (
            dict(parse_replies(runner.run(target, *(case.name for case in shared)).stdout))
            if shared
            else {}
        )
        for case in selected:
            if case.name == "review.planted":
                replies[case.name] = runner.attack_review(target, case.name)
            elif case.name == "review.planted-objects":
                replies[case.name] = runner.attack_objects(target, case.name)
            elif case.name == "agent-api.in-flight":
                replies[case.name] = runner.attack_connection(target, case.name)
            elif case.name == "streams.flood":
                stored = runner.stored_bytes(target, case.name)
                replies[case.name] = (
                    "kept within bounds"
                    if 0 < stored < target.above_limit("stdout")
                    else f"{PASSED}: {stored} bytes are stored"
                )
            elif case.isolated:
                lowered = target.lowered(case.lower)
                limits = {name: lowered.limits[name] for name in case.lower}
                replies[case.name] = single_reply(
                    case, runner.run(lowered, case.name, limits=limits)
                )
    titles = {"attack": "attacks by an agent, and the layers that stop them"}
    return DoctorReport(
        "doctor --attack",
        titles,
        tuple(case_result(case, replies) for case in selected),
        strict=True,
    )
