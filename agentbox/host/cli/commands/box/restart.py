"""`agentbox restart`: the same container, booted again; what boot derives is derived anew."""

from __future__ import annotations

from dataclasses import replace

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import Cli
from agentbox.host.cli.stages import start
from agentbox.host.cli.stages.validate import validated
from agentbox.host.engines.named import engine_named
from agentbox.host.engines.shutdown import last_shutdown
from agentbox.plan.drift import drift


@click.command(name="restart")
@click.option("--no-wait", is_flag=True, help="Return once the container is started.")
@click.pass_obj
def command(cli: Cli, no_wait: bool) -> None:
    """Boot the running box again in place, and say which tasks ended with it.

    Changes of the manifest that need no more than a boot take effect (`agentbox config explain KEY` says what a key
    needs). For others it stops and names them: `agentbox up` makes the new container or image.
    """
    manifest = validated(cli)
    state, out = cli.state(), cli.out
    with state.exclusively():
        record = cli.running_record()
        engine = engine_named(record.engine)
        if engine.inspect(record).state == "absent":
            raise AgentboxError(
                f"cannot restart the box {record.name}: it was removed",
                "Start it: ./agentbox.sh up",
                exit_code=ExitCode.NOT_RUNNING,
            )
        wanted = start.start_again(cli, manifest, record)
        found = drift(record.apply, wanted.plan.apply)
        if more := [*found.rebuild, *found.recreate]:
            raise AgentboxError(
                f"cannot restart the box {record.name} with this manifest: {', '.join(more)} need a new container",
                "Run ./agentbox.sh up.",
            )
        with out.stage("stop") as stage:
            if engine.inspect(record).state == "running":
                engine.stop(record, wanted.plan.resources.stop_seconds)
            stage.said = last_shutdown(engine, record).mark
        with out.stage("restart") as stage:
            state.remember(replace(record, settled=False))
            record = engine.refresh(wanted, record)
            state.remember(record)
            stage.said = record.name
        if no_wait:
            out.document({"ready": None, "name": record.name, "url": record.api_url})
            return
        with out.stage("ready") as stage:
            waited = start.wait(cli, engine, record)
            stage.said = f"boot {waited.verdict['boot_id'][:13]}"
        start.keep_token(cli, record, wanted)
    boot = waited.verdict["boot_id"]
    out.document({"ready": True, "name": record.name, "boot_id": boot, "seconds_to_ready": round(waited.seconds, 3)})
    out.line(f"ready: {record.api_url}")
