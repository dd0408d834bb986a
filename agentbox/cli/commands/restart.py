"""`agentbox restart`: the same container, booted again; what boot derives is derived anew."""

from __future__ import annotations

import click

from agentbox.cli.context import Cli
from agentbox.cli.stages import start
from agentbox.cli.stages.validate import validated
from agentbox.engine.choose import engine_named
from agentbox.engine.docker import Docker


@click.command(name="restart")
@click.option("--no-wait", is_flag=True, help="Return once the container is started.")
@click.pass_obj
def command(cli: Cli, no_wait: bool) -> None:
    """Restart the box in place. Changes of apply class `live` and `boot` take effect; others need `up`."""
    manifest = validated(cli)
    state, out = cli.state(), cli.out
    assert manifest.effective is not None
    with state.exclusively():
        record = state.running_record()
        engine = engine_named(record.engine)
        mounted = state.compose_dir / "agentbox.toml"
        if isinstance(engine, Docker) and mounted.read_bytes() != manifest.raw:
            mounted.write_bytes(manifest.raw)  # in place: the mount holds the inode
        with out.stage("restart") as stage:
            engine.restart(record, manifest.effective.resources.stop_seconds)
            stage.said = record.name
        if no_wait:
            return
        with out.stage("ready") as stage:
            waited = start.wait(cli, engine, record)
            stage.said = f"boot {waited.verdict['boot_id'][:13]}"
    out.document({"ready": True, "boot_id": waited.verdict["boot_id"], "seconds": round(waited.seconds, 3)})
    out.line(f"ready: {record.api_url}")
