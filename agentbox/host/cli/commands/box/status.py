"""`agentbox status`: what runs, whether it is ready, and its drift from the manifest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from agentbox.core import clock
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.interrupted import finish_interrupted, left_trial
from agentbox.host.engines.readiness import (
    NO_ANSWER,
    boot_failure,
    boot_lines,
    query_json,
    query_ready,
)
from agentbox.host.engines.readiness import suggested_fix as remedy
from agentbox.host.engines.registry import engine_by_name

if TYPE_CHECKING:
    from agentbox.host.engines.base import BoxStatus, Engine
    from agentbox.host.engines.state import BoxRecord

_WATCH_SECONDS = 1.0
_CLEAR = "\x1b[H\x1b[2J"  # cursor home, erase the screen


@click.command(name="status")
@click.option(
    "--watch",
    is_flag=True,
    help="Repeat every second until Ctrl-C; with --json one document per line.",
)
@click.pass_obj
def command(cli: CliContext, watch: bool) -> int:
    """Show what runs and whether it is ready: engine, image, plan, missing requirements.

    `drift` lists manifest keys that differ from what runs, `posture drift` differences between the
    container and its plan, `exceptions` the privileges that the manifest adds. Exit code 0: ready,
    1: not ready, 8: off.
    """
    finish_interrupted(cli)
    if not watch:
        report = _collect_status(cli)
        cli.out.document(report)
        _print_status(cli, report)
        return _exit_code(report)
    try:
        while True:
            report = _collect_status(cli)
            cli.out.row(report)
            cli.out.raw(_CLEAR if cli.out.redrawable else "")
            _print_status(cli, report)
            time.sleep(_WATCH_SECONDS)
    except KeyboardInterrupt:  # the intended end
        return ExitCode.DONE


def _collect_status(cli: CliContext) -> dict[str, Any]:
    record = cli.find_record()
    if record is None:
        return {"state": "off"}
    engine = engine_by_name(record.engine)
    running = engine.inspect(record)
    if running.state != "running":
        return {
            "name": record.name,
            "engine": engine.name,
            **_describe_ended(engine, record, running),
        }
    code, verdict = query_ready(record.api_url)
    return {
        "state": "ready" if code == 200 else "not ready",
        "missing": verdict.get("missing", [] if code == 200 else [NO_ANSWER]),
        "degraded": verdict.get("degraded", []),
        "drift": _manifest_drift(cli, record),
        **_record_fields(record, engine, running),
        "boot_id": verdict.get("boot_id", ""),
        **_fetch_posture(record),
        **_fetch_activity(cli),
        **_describe_hold(cli),
        "protections_absent": list(engine.protections_absent),
    }


def _describe_ended(engine: Engine, record: BoxRecord, running: BoxStatus) -> dict[str, Any]:
    """How a box that is not running ended, and what to do."""
    report: dict[str, Any] = {
        "state": running.state,
        "exit_code": running.exit_code,
        "restarts": running.restarts,
    }
    if running.state != "exited":
        return report
    from agentbox.host.engines.shutdown_outcome import last_shutdown

    shutdown, lines = last_shutdown(engine, record), boot_lines(engine, record)
    if shutdown.clean:
        reason, advice = f"it was stopped: {shutdown.summary}", "run ./agentbox.sh up"
    elif failed_step := boot_failure(lines):
        restarts = f"; {engine.name} restarted it {running.restarts} times"
        reason = f"{failed_step}{restarts if running.restarts else ''}"
        advice = f"{remedy(lines) or 'See ./agentbox.sh logs.'} Then run ./agentbox.sh up"
    elif running.restarts:
        reason = f"it exited; {engine.name} restarted it {running.restarts} times, the maximum"
        advice = "see ./agentbox.sh logs for the cause; ./agentbox.sh up starts it with a new count"
    else:
        reason = "its first process was killed or exited, which ended all its programs"
        advice = "see ./agentbox.sh logs; ./agentbox.sh up restarts it"
    return {**report, "why": reason, "fix": advice}


def _record_fields(record: BoxRecord, engine: Engine, running: BoxStatus) -> dict[str, Any]:
    return {
        "name": record.name,
        "engine": engine.name,
        "url": record.api_url,
        "image_ref": record.image_ref,
        "plan_digest": record.plan_digest,
        "project": record.project,
        "restarts": running.restarts,
    }


def _fetch_posture(record: BoxRecord) -> dict[str, Any]:
    """Exceptions and posture drift; empty if the box does not respond."""
    (_, health), (_, meta) = (query_json(record.api_url, path) for path in ("/health", "/v1/meta"))
    if not (health and meta):
        return {}
    return {
        "exceptions": meta["security"]["exceptions"],
        "posture_drift": health["posture"]["drift"],
    }


def _fetch_activity(cli: CliContext) -> dict[str, Any]:
    """Uptime, number of running agents, last backup; empty if the API does not respond."""
    from agentbox.host.cli.backup_age import last_backup

    try:
        with cli.client() as client:
            agents = client.call("list_agents")["items"]
            return {
                "uptime_seconds": round(client.call("livez")["uptime"], 1),
                "agents": sum(agent["state"] == "running" for agent in agents),
                "last_backup": last_backup(client.call("list_backups"), clock.now()),
            }
    except AgentboxError:
        return {}


def _describe_hold(cli: CliContext) -> dict[str, Any]:
    """Why writes are refused; empty if they are not."""
    if trial := left_trial(cli):
        from agentbox.host.generations.trial_steps import describe_left

        advice = "./agentbox.sh rollback goes back, ./agentbox.sh up keeps it"
        return {"held": f"{describe_left(trial)}; {advice}"}
    try:
        with cli.client() as client:
            held = client.call("show_generation")["held"]
    except AgentboxError:
        return {}
    return {"held": "by an upgrade that has ended; ./agentbox.sh up releases it"} if held else {}


def _manifest_drift(cli: CliContext, record: BoxRecord) -> list[str]:
    from agentbox.plan.drift import find_drift

    if not record.settled:
        return ["unknown: an earlier `up` was interrupted, run it again"]
    changes = find_drift(record.apply, cli.apply_fingerprints())
    return [*changes.rebuild, *changes.recreate, *changes.boot, *changes.live]


def _print_status(cli: CliContext, report: dict[str, Any]) -> None:
    for key, value in report.items():
        text = (
            (", ".join(map(str, value)) or "none")
            if isinstance(value, list)
            else value
            if value not in ("", None)
            else "-"
        )
        cli.out.line(f"{key.replace('_', ' '):<19} {text}")
    if report.get("drift"):
        cli.out.line(f"{'':<19} run ./agentbox.sh up to bring the box to the manifest")


def _exit_code(report: dict[str, Any]) -> int:
    if report["state"] == "ready":
        return ExitCode.DONE
    return ExitCode.NOT_RUNNING if report["state"] in {"off", "absent", "exited"} else ExitCode.BAD
