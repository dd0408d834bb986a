"""`agentbox up`: starts the box of a manifest and waits until it is ready."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize
from agentbox.host.cli.stages import start
from agentbox.host.cli.stages.generation import confirm_start, mark_failed, release_hold
from agentbox.host.cli.stages.preparation import prepare_start
from agentbox.host.cli.stages.start import UpOptions
from agentbox.host.cli.stages.trial_end import finish_trial
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.docker.old_images import remove_old_images
from agentbox.host.engines.engine_choice import Engine
from agentbox.host.engines.registry import ENGINE_NAMES, UNSUPPORTED
from agentbox.host.engines.state import BoxRecord

if TYPE_CHECKING:
    from agentbox.host.engines.base import StartSpec
    from agentbox.host.engines.readiness import WaitResult


@click.command(name="up")
@click.option(
    "--engine",
    "engine_name",
    type=click.Choice((*ENGINE_NAMES, UNSUPPORTED)),
    default="auto",
    show_default=True,
    metavar=f"[{'|'.join(ENGINE_NAMES)}]",
    help="The engine that runs the box.",
)
@click.option(
    "--build",
    "force_build",
    is_flag=True,
    help="Build even if the loaded image has the same inputs.",
)
@click.option(
    "--locked", is_flag=True, help="Fail instead of re-locking when agentbox.lock does not match."
)
@click.option(
    "--registry",
    metavar="REF",
    default="",
    help="Pull NAME@sha256:… instead of building; needs no Nix.",
)
@click.option("--yes", "-y", is_flag=True, help="Consent to installing missing Debian packages.")
@click.option("--no-wait", is_flag=True, help="Return once the box is started.")
@click.option("--strict", is_flag=True, help="Make boot warnings about posture and drift fatal.")
@click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False),
    help="Mount this directory as the workspace.",
)
@click.option("--allow-test-hooks", is_flag=True, help="Build and accept an image with test hooks.")
@click.pass_obj
def command(
    cli: CliContext,
    engine_name: str,
    force_build: bool,
    locked: bool,
    registry: str,
    yes: bool,
    no_wait: bool,
    strict: bool,
    project: Path | None,
    allow_test_hooks: bool,
) -> None:
    """Install prerequisites, build the image, start the box and wait until it is ready.

    Each stage prints a line. A repeated `up` takes seconds. Ctrl-C is safe at any time: the next
    `up` resumes from there.
    """
    with cli.state().exclusive_lock():
        options = UpOptions(
            registry=registry,
            strict=strict,
            test_hooks=allow_test_hooks,
            hooks=start.hooks_from_environment(),
        )
        finish_trial(cli, keep=True)
        engine, record, spec = _start_box(
            cli, engine_name, force_build, locked, yes, options, project
        )
        if no_wait:
            cli.out.document(
                {"ready": None, "name": record.name, "engine": record.engine, "url": record.api_url}
            )
            cli.out.line(f"started: {record.api_url}   (check with ./agentbox.sh status)")
            return
        with cli.out.stage("ready") as stage:
            try:
                wait_result = start.wait_for_box(cli, engine, record)
            except AgentboxError as error:
                raise mark_failed(cli, record, error) from error
            stage.result = f"boot {wait_result.verdict['boot_id'][:13]}"
        token = start.store_token(cli, record, spec)
        release_hold(cli)
        confirm_start(cli, record)
        if isinstance(engine, DockerEngine):
            _clean_up_images(cli)
    _print_ready(cli, record, token, wait_result, engine.protections_absent)


def _start_box(
    cli: CliContext,
    engine_name: str,
    force_build: bool,
    locked: bool,
    yes: bool,
    options: UpOptions,
    project: Path | None,
) -> tuple[Engine, BoxRecord, StartSpec]:
    """Runs stages 1 to 8."""
    engine, spec = prepare_start(
        cli,
        engine_name,
        force_build=force_build,
        locked=locked,
        yes=yes,
        options=options,
        project=project,
    )
    with cli.out.stage("start") as stage:
        result = start.bring_up(cli, engine, spec)
        stage.result = result.summary
    return engine, result.record, spec


def _clean_up_images(cli: CliContext) -> None:
    """Removes old images once the box is ready; failures are retried by the next `up`."""
    try:
        if removed := remove_old_images(cli.state()):
            cli.out.note(f"removed {pluralize(len(removed), 'image')} of earlier builds")
    except AgentboxError as error:
        cli.out.note(error.message)


def _print_ready(
    cli: CliContext,
    record: BoxRecord,
    token: Path,
    wait_result: WaitResult,
    protections_absent: tuple[str, ...],
) -> None:
    out, verdict = cli.out, wait_result.verdict
    degraded = verdict.get("degraded", [])
    out.document(
        {
            "ready": True,
            "name": record.name,
            "engine": record.engine,
            "url": record.api_url,
            "token_file": str(token),
            "boot_id": verdict["boot_id"],
            "plan_digest": verdict["plan_digest"],
            "image_ref": record.image_ref,
            "seconds_to_ready": round(wait_result.seconds, 3),
            "degraded": degraded,
            "protections_absent": protections_absent,
        }
    )
    out.block(f"\nready: {record.api_url}   (admin token: {token})")
    if degraded:
        out.line(f"degraded: {', '.join(degraded)}")
    for line in protections_absent:
        out.line(f"not protected here: {line}")
    out.line("try:")
    out.line(
        '  ./agentbox.sh run -- python3 -c "print(6 * 7)"    run one command as an agent in the box'
    )
    out.line(
        "  ./agentbox.sh status                             show what runs and whether it is ready"
    )
    out.line("  ./agentbox.sh boot explain                       show the durations of the boot")
