"""`agentbox status`: what runs, whether it is ready, and whether it still is what the manifest says."""

from __future__ import annotations

import time
from typing import Any

import click

from agentbox.cli.context import Cli
from agentbox.engine.choose import engine_named
from agentbox.engine.waiting import ask_ready
from agentbox.errors import ExitCode

_WATCH_SECONDS = 1.0


@click.command(name="status")
@click.option("--watch", is_flag=True, help="Again every second until Ctrl-C.")
@click.pass_obj
def command(cli: Cli, watch: bool) -> int:
    """Show engine, image, plan, readiness. Exit 0 ready, 1 not ready, 8 off."""
    while True:
        found = _status(cli)
        cli.out.document(found)
        for key, value in found.items():
            cli.out.line(
                f"{key:<12} {value if not isinstance(value, (list, tuple)) else ', '.join(map(str, value)) or '-'}"
            )
        if not watch:
            return _exit_code(found)
        time.sleep(_WATCH_SECONDS)


def _status(cli: Cli) -> dict[str, Any]:
    record = cli.state().record()
    if record is None:
        return {"state": "off"}
    engine = engine_named(record.engine)
    running = engine.inspect(record)
    if running.state != "running":
        return {"state": running.state, "engine": engine.name, "name": record.name, "exit_code": running.exit_code}
    code, verdict = ask_ready(record.api_url)
    return {
        "state": "ready" if code == 200 else "not ready",
        "name": record.name,
        "engine": engine.name,
        "url": record.api_url,
        "image": record.image_ref or "-",
        "plan": record.plan_digest,
        "drift": _drift(cli, record.plan_digest),
        "project": record.project or "-",
        "boot": verdict.get("boot_id", "-"),
        "missing": verdict.get("missing", [] if code == 200 else ["the management API does not answer"]),
        "degraded": verdict.get("degraded", []),
        "not protected": list(engine.protections_absent),
    }


def _drift(cli: Cli, running_plan: str) -> str:
    from agentbox.cli.stages.image import plan_of

    manifest = cli.load_manifest()
    plan = plan_of(manifest, cli.lock, test_hooks=False)
    return "none" if plan.digest == running_plan else f"the manifest's plan is {plan.digest}: run `agentbox up`"


def _exit_code(found: dict[str, Any]) -> int:
    if found["state"] == "ready":
        return ExitCode.DONE
    return ExitCode.NOT_RUNNING if found["state"] in {"off", "absent", "exited"} else ExitCode.BAD
