"""The box itself against CIS Docker 1.6 and the Pod Security Standards: what its plan holds or gives up, and whether what
runs is as planned."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentbox.box.supervision.protections import PROCESS_ENGINE_LACKS
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.doctor.host import Host
from agentbox.host.engines.command import run
from agentbox.host.engines.readiness import query_json
from agentbox.plan.render.controls import ENGINE
from agentbox.plan.render.security_report import report

NAME = "posture"
TITLE = "the box's line of hardening, by control"
# First word of a control that the box measures of itself (agentbox.box.posture) -> the line that promises it.
MEASURED: Final[Mapping[str, str]] = {
    "user": "user",
    "capabilities": "cap_drop, cap_add",
    "capability_bound": "cap_drop, cap_add",
    "no_new_privs": "security_opt: no-new-privileges",
    "seccomp": "security_opt: seccomp",
    "seccomp_fingerprint": "security_opt: seccomp",
    "root": "read_only",
    "proc": "read_only",
    "sys": "read_only",
    "groups": "devices, group_add, runtime",
    "devices.extra": "devices, group_add, runtime",
    "secrets": "secrets",
    "limit.memory": "mem_limit, cpus",
    "limit.cpus": "mem_limit, cpus",
    "limit.pids": "pids_limit",
    "limit.core": "ulimits",
    "limit.nofile": "ulimits",
    "mounts.extra": "volumes",
    "mount": "volumes",
}


def run_check(host: Host) -> Iterator[CheckResult]:
    if not host.is_container:
        yield from _check_process_box(host)
        return
    drift, measured = _measured_drift(host)
    for number, line in enumerate(report(host.plan)["effective"]):
        yield _check_line(number, line, drift.pop(line["line"], []), measured)
    for name, differences in drift.items():
        yield CheckResult(
            check=NAME,
            subject=f"drift-{name}",
            state="bad",
            message="; ".join(differences),
            advice="Run `agentbox up`.",
        )
    yield from _check_engine(host)


def _check_line(
    number: int, line: Mapping[str, Any], drift: list[str], measured: bool
) -> CheckResult:
    subject = f"{number:02d}-{line['line'].split(',')[0].split(':')[0].replace(' ', '-').replace(';', '')}"
    controls = (*line["holds"], *line["gives_up"])
    if drift:
        return CheckResult(
            check=NAME,
            subject=subject,
            state="bad",
            message=f"{line['line']}: {'; '.join(drift)}",
            controls=controls,
            advice="The container is not as its plan promises: run `agentbox up`; if it stays, see who changed it.",
        )
    if line["gives_up"]:
        given_up = "; ".join(f"{control}: {reason}" for control, reason in line["gives_up"].items())
        return CheckResult(
            check=NAME,
            subject=subject,
            state="warning",
            message=f"{line['line']}: {given_up}",
            controls=controls,
            advice="An exception of the manifest gives this up; security-report.md says which and why.",
        )
    evidence = (
        "measured in the box" if measured and line["line"] in MEASURED.values() else "as planned"
    )
    return CheckResult(
        check=NAME,
        subject=subject,
        state="good",
        message=f"{line['line']}: {line['value']} ({evidence})",
        controls=controls,
    )


def _measured_drift(host: Host) -> tuple[dict[str, list[str]], bool]:
    """What the box finds of itself, by line, and whether one was there to be asked."""
    if host.record is None or not host.running:
        return {}, False
    _, health = query_json(host.record.api_url, "/health")
    by_line: dict[str, list[str]] = {}
    for text in health.get("posture", {}).get("drift", []):
        control = text.partition(": ")[0]
        name = MEASURED.get(control, MEASURED.get(control.partition(":")[0], control))
        by_line.setdefault(name, []).append(text)
    return by_line, "posture" in health


def _check_engine(host: Host) -> Iterator[CheckResult]:
    """AppArmor and SELinux are the engine's to apply."""
    if host.daemon.state != "answers":
        return
    options = json.loads(
        run(
            ["docker", "info", "--format", "{{json .SecurityOptions}}"],
            doing="ask docker what it applies",
        )
    )
    names = [option.partition(",")[0].removeprefix("name=") for option in options]
    active = [name for name in ("apparmor", "selinux") if name in names]
    controls = tuple(f"CIS {number}" for number in ENGINE)
    if active:
        yield CheckResult(
            check=NAME,
            subject="engine",
            state="good",
            message=f"the engine applies {' and '.join(active)}",
            controls=controls,
        )
    else:
        yield CheckResult(
            check=NAME,
            subject="engine",
            state="note",
            message="the engine applies neither AppArmor nor SELinux",
            controls=controls,
            advice="Not needed for what docs/security.md promises; on a host that has one, switch it on for the engine.",
        )


def _check_process_box(host: Host) -> Iterator[CheckResult]:
    for number, text in enumerate(PROCESS_ENGINE_LACKS):
        yield CheckResult(
            check=NAME,
            subject=f"process-{number}",
            state="warning",
            message=text,
            advice="Use a container for more than development.",
        )
    drift, measured = _measured_drift(host)
    for name, differences in drift.items():
        yield CheckResult(
            check=NAME,
            subject=f"drift-{name}",
            state="bad",
            message="; ".join(differences),
            advice="Run `agentbox up`.",
        )
    if measured and not drift:
        yield CheckResult(
            check=NAME,
            subject="measured",
            state="good",
            message="no capability, no new privileges, Landlock, limits: as promised",
        )
