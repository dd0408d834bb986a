"""`agentbox restart`: boots the same container again."""

from __future__ import annotations

from dataclasses import replace

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages import start
from agentbox.host.cli.stages.validate import load_valid_manifest
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.shutdown_outcome import last_shutdown
from agentbox.host.generations.recording import amend
from agentbox.plan.drift import find_drift


@click.command(name="restart")
@click.option("--no-wait", is_flag=True, help="Return once the container is started.")
@click.pass_obj
def command(cli: CliContext, no_wait: bool) -> None:
    """Restart the running box in place, and report which tasks it ended.

    Manifest changes that need at most a boot take effect (see `agentbox config explain KEY`).
    Others are an error that names them: `agentbox up` creates the new container or image.
    """
    manifest = load_valid_manifest(cli)
    state, out = cli.state(), cli.out
    with state.exclusive_lock():
        record = cli.running_record()
        engine = engine_by_name(record.engine)
        if engine.inspect(record).state == "absent":
            raise AgentboxError(
                f"cannot restart the box {record.name}: it was removed",
                "Start it: ./agentbox.sh up",
                exit_code=ExitCode.NOT_RUNNING,
            )
        spec = start.restart_spec(cli, manifest, record)
        changes = find_drift(record.apply, spec.plan.apply)
        if blocking := [*changes.rebuild, *changes.recreate]:
            raise AgentboxError(
                f"cannot restart the box {record.name} with this manifest: {', '.join(blocking)} "
                "need a new container",
                "Run ./agentbox.sh up.",
            )
        with out.stage("stop") as stage:
            if engine.inspect(record).state == "running":
                engine.stop(record, spec.plan.resources.stop_seconds)
            stage.result = last_shutdown(engine, record).summary
        with out.stage("restart") as stage:
            state.save_record(replace(record, settled=False))
            record = amend(engine, spec, engine.refresh(spec, record), record)
            state.save_record(record)
            stage.result = record.name
        if no_wait:
            out.document({"ready": None, "name": record.name, "url": record.api_url})
            return
        with out.stage("ready") as stage:
            wait_result = start.wait_for_box(cli, engine, record)
            stage.result = f"boot {wait_result.verdict['boot_id'][:13]}"
        start.store_token(cli, record, spec)
    boot_id = wait_result.verdict["boot_id"]
    out.document(
        {
            "ready": True,
            "name": record.name,
            "boot_id": boot_id,
            "seconds_to_ready": round(wait_result.seconds, 3),
        }
    )
    out.line(f"ready: {record.api_url}")
