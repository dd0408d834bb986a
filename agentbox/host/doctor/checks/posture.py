"""Hardening of the box by CIS Docker 1.6 and Pod Security Standards controls: settings of the plan,
exceptions, and drift of the running box."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentbox.box.supervision.missing_protections import PROCESS_ENGINE_LACKS
from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.engines.command import run
from agentbox.host.engines.readiness import query_json
from agentbox.plan.render.controls import ENGINE
from agentbox.plan.render.security_report import report

NAME = "posture"
TITLE = "hardening of the box, by control"
# Prefix of a control measured in the box (agentbox.box.posture) -> line of the security report.
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


def run_check(host: CheckContext) -> Iterator[CheckResult]:
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
    name = line["line"].split(",")[0].split(":")[0].replace(" ", "-").replace(";", "")
    subject = f"{number:02d}-{name}"
    controls = (*line["holds"], *line["gives_up"])
    if drift:
        return CheckResult(
            check=NAME,
            subject=subject,
            state="bad",
            message=f"{line['line']}: {'; '.join(drift)}",
            controls=controls,
            advice="Run `agentbox up`; if the drift persists, find out who changed the container.",
        )
    if line["gives_up"]:
        lost = "; ".join(f"{control}: {reason}" for control, reason in line["gives_up"].items())
        return CheckResult(
            check=NAME,
            subject=subject,
            state="warning",
            message=f"{line['line']}: {lost}",
            controls=controls,
            advice="See security-report.md: an exception of the manifest causes this.",
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


def _measured_drift(host: CheckContext) -> tuple[dict[str, list[str]], bool]:
    """Drift reported by the box, by line, and whether the box responded."""
    if host.record is None or not host.running:
        return {}, False
    _, health = query_json(host.record.api_url, "/health")
    by_line: dict[str, list[str]] = {}
    for text in health.get("posture", {}).get("drift", []):
        control = text.partition(": ")[0]
        name = MEASURED.get(control, MEASURED.get(control.partition(":")[0], control))
        by_line.setdefault(name, []).append(text)
    return by_line, "posture" in health


def _check_engine(host: CheckContext) -> Iterator[CheckResult]:
    """Checks AppArmor and SELinux, which the engine applies."""
    if host.daemon.state != "answers":
        return
    options = json.loads(
        run(
            ["docker", "info", "--format", "{{json .SecurityOptions}}"],
            doing="query docker's security options",
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
            advice="Enable one if the host has it; docs/security.md does not depend on it.",
        )


def _check_process_box(host: CheckContext) -> Iterator[CheckResult]:
    for number, text in enumerate(PROCESS_ENGINE_LACKS):
        yield CheckResult(
            check=NAME,
            subject=f"process-{number}",
            state="warning",
            message=text,
            advice="Use a container except for development.",
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
            message="no capability, no new privileges, Landlock, limits: as planned",
        )
