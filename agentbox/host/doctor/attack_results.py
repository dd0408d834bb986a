"""Judges the replies of attack cases."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from agentbox.contracts.orchestrator import RunResult
from agentbox.host.doctor.check_result import CheckResult
from agentbox.sandbox.attacks.case import (
    ABSENT,
    OFF,
    PASSED,
    AttackCase,
)
from agentbox.sandbox.attacks.cases.streams import FORGED_CODE


def parse_replies(output: bytes) -> Iterator[tuple[str, str]]:
    """Case and reply of each line that an agent printed; other lines are ignored."""
    for text in output.decode(errors="replace").splitlines():
        try:
            entry = json.loads(text)
            yield entry["case"], str(entry["reply"])
        except (ValueError, KeyError, TypeError):
            continue


def single_reply(case: AttackCase, output: RunResult) -> str:
    """The reply of an agent that ran one case and may have been terminated for it."""
    if case.name == "streams.forged":
        is_reported = (output.exit.reason, output.exit.code) == ("exit", FORGED_CODE)
        return (
            "its own exit code"
            if is_reported
            else f"{PASSED}: the box reports {output.exit.reason} {output.exit.code}"
        )
    if output.exit.reason == "limit":
        return "ended: limit"
    reply = dict(parse_replies(output.stdout)).get(case.name)
    return reply or f"ended: {output.exit.reason} {output.exit.signal or output.exit.code}"


def case_result(case: AttackCase, replies: Mapping[str, str]) -> CheckResult:
    """The result of a case: good if one of its layers stopped it, bad if none did."""
    result = _judge_case(case, replies)
    return (
        replace(result, message=f"{result.message}  [edition {case.since}]")
        if case.since > 1
        else result
    )


def _judge_case(case: AttackCase, replies: Mapping[str, str]) -> CheckResult:
    reply = replies.get(case.name, "nothing: the attack was not reached")
    layer = case.blocked_by.get(reply, "")
    facts = {"reply": reply, "layer": layer, "tests": list(case.tests), "since": case.since}
    if layer:
        return CheckResult(
            check="attack",
            subject=case.name,
            state="good",
            message=f"{case.title}: {reply} from {layer}",
            facts=facts,
        )
    if reply.startswith(PASSED):
        return CheckResult(
            check="attack",
            subject=case.name,
            state="bad",
            message=f"NOT STOPPED: an agent {case.title} ({reply})",
            facts=facts,
            advice=(
                "Do not run untrusted agents in this box. docs/security.md describes how to report "
                "it."
            ),
        )
    if reply.startswith(ABSENT + OFF):
        message = f"{case.title}: nothing to attack, {reply.removeprefix(ABSENT + OFF)}"
        return CheckResult(
            check="attack", subject=case.name, state="note", message=message, facts=facts
        )
    if reply.startswith(ABSENT):
        message = f"target missing: {case.title}: {reply.removeprefix(ABSENT)}"
        return CheckResult(
            check="attack",
            subject=case.name,
            state="unknown",
            message=message,
            facts=facts,
            advice="Nothing was tested: the target does not exist in this box.",
        )
    message = (
        f"{case.title}: unexpected reply {reply} for its layers "
        f"({', '.join(sorted(set(case.blocked_by.values())))})"
    )
    return CheckResult(
        check="attack",
        subject=case.name,
        state="unknown",
        message=message,
        facts=facts,
        advice="Check the cause before relying on it; something else may have blocked it.",
    )
