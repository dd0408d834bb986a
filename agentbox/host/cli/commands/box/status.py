"""`agentbox status`: what runs, whether it is ready, and whether it still is what the manifest says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import Cli
from agentbox.host.engines.named import engine_named
from agentbox.host.engines.waiting import SILENT, ask, ask_ready, boot_lines, failure
from agentbox.host.engines.waiting import fix as remedy

if TYPE_CHECKING:
    from agentbox.host.engines.base import Engine, Running
    from agentbox.host.engines.state import BoxRecord

_WATCH_SECONDS = 1.0
_CLEAR = "\x1b[H\x1b[2J"  # cursor home, erase the screen


@click.command(name="status")
@click.option("--watch", is_flag=True, help="Again every second until Ctrl-C; with --json one document a line.")
@click.pass_obj
def command(cli: Cli, watch: bool) -> int:
    """Show what runs and whether it is ready: engine, image, plan, what is missing.

    `drift` lists keys of the manifest that differ from what runs, `posture drift` what of the
    container is not as its plan promises, `exceptions` what the manifest widens. Exit code 0: ready, 1: not ready, 8: off.
    """
    if not watch:
        found = _status(cli)
        cli.out.document(found)
        _for_people(cli, found)
        return _exit_code(found)
    try:
        while True:
            found = _status(cli)
            cli.out.row(found)
            cli.out.raw(_CLEAR if cli.out.redrawable else "")
            _for_people(cli, found)
            time.sleep(_WATCH_SECONDS)
    except KeyboardInterrupt:  # how it is meant to end
        return ExitCode.DONE


def _status(cli: Cli) -> dict[str, Any]:
    record = cli.known_record()
    if record is None:
        return {"state": "off"}
    engine = engine_named(record.engine)
    running = engine.inspect(record)
    if running.state != "running":
        return {"name": record.name, "engine": engine.name, **_ended(engine, record, running)}
    code, verdict = ask_ready(record.api_url)
    return {
        "state": "ready" if code == 200 else "not ready",
        "missing": verdict.get("missing", [] if code == 200 else [SILENT]),
        "degraded": verdict.get("degraded", []),
        "drift": _drift(cli, record),
        **_facts(record, engine, running),
        "boot_id": verdict.get("boot_id", ""),
        **_posture(record),
        **_inside(cli),
        "protections_absent": list(engine.protections_absent),
    }


def _ended(engine: Engine, record: BoxRecord, running: Running) -> dict[str, Any]:
    """How a box ended that does not run, and what to do."""
    found: dict[str, Any] = {"state": running.state, "exit_code": running.exit_code, "restarts": running.restarts}
    if running.state != "exited":
        return found
    from agentbox.host.engines.shutdown import last_shutdown

    last, lines = last_shutdown(engine, record), boot_lines(engine, record)
    if last.clean:
        why, fix = f"it was stopped: {last.mark}", "run ./agentbox.sh up"
    elif failed := failure(lines):
        why = f"{failed}{f'; {engine.name} started it again {running.restarts} times' if running.restarts else ''}"
        fix = f"{remedy(lines) or './agentbox.sh logs says more.'} Then run ./agentbox.sh up"
    elif running.restarts:
        why = f"it ended by itself; {engine.name} started it again {running.restarts} times, its limit"
        fix = "./agentbox.sh logs says why it ended; ./agentbox.sh up starts it and counts from 0 again"
    else:
        why = "its first process was killed, or ended by itself; what it ran ended with it"
        fix = "./agentbox.sh logs says more; ./agentbox.sh up boots it again"
    return {**found, "why": why, "fix": fix}


def _facts(record: BoxRecord, engine: Engine, running: Running) -> dict[str, Any]:
    return {
        "name": record.name,
        "engine": engine.name,
        "url": record.api_url,
        "image_ref": record.image_ref,
        "plan_digest": record.plan_digest,
        "project": record.project,
        "restarts": running.restarts,
    }


def _posture(record: BoxRecord) -> dict[str, Any]:
    """What the box widens, and what of it is not as its plan promises; empty while it does not answer."""
    (_, health), (_, meta) = (ask(record.api_url, path) for path in ("/health", "/v1/meta"))
    if not (health and meta):
        return {}
    return {"exceptions": meta["security"]["exceptions"], "posture_drift": health["posture"]["drift"]}


def _inside(cli: Cli) -> dict[str, Any]:
    """What only the box knows; empty while its API does not answer this caller."""
    try:
        with cli.client() as client:
            agents = client.call("list_agents")["items"]
            return {
                "uptime_seconds": round(client.livez()["uptime"], 1),
                "agents": sum(agent["state"] == "running" for agent in agents),
            }
    except AgentboxError:
        return {}


def _drift(cli: Cli, record: BoxRecord) -> list[str]:
    from agentbox.plan.drift import drift

    if not record.settled:
        return ["unknown: an earlier `up` was cut off, run it again"]
    found = drift(record.apply, cli.apply())
    return [*found.rebuild, *found.recreate, *found.boot, *found.live]


def _for_people(cli: Cli, found: dict[str, Any]) -> None:
    for key, value in found.items():
        shown = (
            (", ".join(map(str, value)) or "none")
            if isinstance(value, list)
            else value
            if value not in ("", None)
            else "-"
        )
        cli.out.line(f"{key.replace('_', ' '):<19} {shown}")
    if found.get("drift"):
        cli.out.line(f"{'':<19} run ./agentbox.sh up to bring the box to the manifest")


def _exit_code(found: dict[str, Any]) -> int:
    if found["state"] == "ready":
        return ExitCode.DONE
    return ExitCode.NOT_RUNNING if found["state"] in {"off", "absent", "exited"} else ExitCode.BAD
