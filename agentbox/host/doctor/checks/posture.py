"""The box itself against CIS Docker 1.6 and the Pod Security Standards: what its plan holds or gives up, and whether what
runs is as planned."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentbox.box.supervision.protections import PROCESS_ENGINE_LACKS
from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row
from agentbox.host.engines.command import run
from agentbox.host.engines.waiting import ask
from agentbox.plan.render.controls import ENGINE
from agentbox.plan.render.security_report import report

NAME = "posture"
TITLE = "the box's line of hardening, by control"
# First word of a control that the box measures of itself (agentbox.box.posture) -> the line that promises it.
MEASURED: Final[Mapping[str, str]] = {
    "user": "user", "capabilities": "cap_drop, cap_add", "capability_bound": "cap_drop, cap_add",
    "no_new_privs": "security_opt: no-new-privileges", "seccomp": "security_opt: seccomp",
    "seccomp_fingerprint": "security_opt: seccomp", "root": "read_only", "proc": "read_only", "sys": "read_only",
    "groups": "devices, group_add, runtime", "devices.extra": "devices, group_add, runtime", "secrets": "secrets",
    "limit.memory": "mem_limit, cpus", "limit.cpus": "mem_limit, cpus", "limit.pids": "pids_limit",
    "limit.core": "ulimits", "limit.nofile": "ulimits", "mounts.extra": "volumes", "mount": "volumes",
}  # fmt: skip


def look(host: Host) -> Iterator[Row]:
    if not host.contained:
        yield from _without_container(host)
        return
    drift, known = _drift(host)
    for number, line in enumerate(report(host.plan)["effective"]):
        yield _line(number, line, drift.pop(line["line"], []), known)
    for name, found in drift.items():
        yield Row(check=NAME, subject=f"drift-{name}", state="bad", said="; ".join(found), advice="Run `agentbox up`.")
    yield from _engine(host)


def _line(number: int, line: Mapping[str, Any], drift: list[str], known: bool) -> Row:
    subject = f"{number:02d}-{line['line'].split(',')[0].split(':')[0].replace(' ', '-').replace(';', '')}"
    controls = (*line["holds"], *line["gives_up"])
    if drift:
        return Row(check=NAME, subject=subject, state="bad", said=f"{line['line']}: {'; '.join(drift)}", controls=controls,
                   advice="The container is not as its plan promises: run `agentbox up`; if it stays, see who changed it.")  # fmt: skip
    if line["gives_up"]:
        lost = "; ".join(f"{control}: {why}" for control, why in line["gives_up"].items())
        return Row(check=NAME, subject=subject, state="warning", said=f"{line['line']}: {lost}", controls=controls,
                   advice="An exception of the manifest gives this up; security-report.md says which and why.")  # fmt: skip
    where = "measured in the box" if known and line["line"] in MEASURED.values() else "as planned"
    return Row(check=NAME, subject=subject, state="good", said=f"{line['line']}: {line['value']} ({where})", controls=controls)  # fmt: skip


def _drift(host: Host) -> tuple[dict[str, list[str]], bool]:
    """What the box finds of itself, by line, and whether one was there to be asked."""
    if host.record is None or not host.running:
        return {}, False
    _, health = ask(host.record.api_url, "/health")
    found: dict[str, list[str]] = {}
    for text in health.get("posture", {}).get("drift", []):
        control = text.partition(": ")[0]
        name = MEASURED.get(control, MEASURED.get(control.partition(":")[0], control))
        found.setdefault(name, []).append(text)
    return found, "posture" in health


def _engine(host: Host) -> Iterator[Row]:
    """AppArmor and SELinux are the engine's to apply."""
    if host.daemon.state != "answers":
        return
    options = json.loads(
        run(["docker", "info", "--format", "{{json .SecurityOptions}}"], doing="ask docker what it applies")
    )
    names = [option.partition(",")[0].removeprefix("name=") for option in options]
    held = [name for name in ("apparmor", "selinux") if name in names]
    controls = tuple(f"CIS {number}" for number in ENGINE)
    if held:
        yield Row(check=NAME, subject="engine", state="good", said=f"the engine applies {' and '.join(held)}", controls=controls)  # fmt: skip
    else:
        yield Row(check=NAME, subject="engine", state="note", said="the engine applies neither AppArmor nor SELinux", controls=controls,
                  advice="Not needed for what docs/security.md promises; on a host that has one, switch it on for the engine.")  # fmt: skip


def _without_container(host: Host) -> Iterator[Row]:
    for number, text in enumerate(PROCESS_ENGINE_LACKS):
        yield Row(check=NAME, subject=f"process-{number}", state="warning", said=text, advice="Use a container for more than development.")  # fmt: skip
    drift, known = _drift(host)
    for name, found in drift.items():
        yield Row(check=NAME, subject=f"drift-{name}", state="bad", said="; ".join(found), advice="Run `agentbox up`.")
    if known and not drift:
        yield Row(check=NAME, subject="measured", state="good", said="no capability, no new privileges, Landlock, limits: as promised")  # fmt: skip
