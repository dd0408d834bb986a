"""`agentbox up`: from a manifest to a box that has proven itself ready."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.context import Cli
from agentbox.host.cli.output import counted
from agentbox.host.cli.stages import image, prerequisites, start
from agentbox.host.cli.stages.lock import lock_and_fetch
from agentbox.host.cli.stages.start import Wish
from agentbox.host.cli.stages.validate import validated
from agentbox.host.engines.bring import check
from agentbox.host.engines.choose import Engine
from agentbox.host.engines.docker.docker import Docker
from agentbox.host.engines.docker.old_images import remove_old_images
from agentbox.host.engines.named import LATER, NAMES
from agentbox.host.engines.project import project_folder
from agentbox.host.engines.state import BoxRecord

if TYPE_CHECKING:
    from agentbox.host.engines.base import Start
    from agentbox.host.engines.waiting import Waited


@click.command(name="up")
@click.option(
    "--engine",
    "asked",
    type=click.Choice((*NAMES, LATER)),
    default="auto",
    show_default=True,
    metavar=f"[{'|'.join(NAMES)}]",
    help="What runs the box.",
)
@click.option(
    "--build", "force_build", is_flag=True, help="Build even if the loaded image was made of the same inputs."
)
@click.option("--locked", is_flag=True, help="Refuse instead of re-locking when agentbox.lock does not fit.")
@click.option("--registry", metavar="REF", default="", help="Pull NAME@sha256:… instead of building; needs no Nix.")
@click.option("--yes", "-y", is_flag=True, help="Consent to installing the Debian packages that are missing.")
@click.option("--no-wait", is_flag=True, help="Return once the box is started.")
@click.option("--strict", is_flag=True, help="Boot warnings about posture and drift are fatal.")
@click.option("--project", type=click.Path(path_type=Path, file_okay=False), help="A folder of yours as the workspace.")
@click.option("--allow-test-hooks", is_flag=True, help="Build and accept an image with test hooks.")
@click.pass_obj
def command(
    cli: Cli, asked: str, force_build: bool, locked: bool, registry: str, yes: bool, no_wait: bool, strict: bool,
    project: Path | None, allow_test_hooks: bool,
) -> None:  # fmt: skip
    """Set up what is missing, build the image, start the box and wait until it is ready.

    Every stage has a line; stages with nothing to do say so. A second `up` takes seconds. Ctrl-C at any moment is
    safe: the next `up` goes on from there.
    """
    with cli.state().exclusively():
        wish = Wish(registry=registry, strict=strict, test_hooks=allow_test_hooks, hooks=start.hooks_given())
        engine, record, wanted = _start(cli, asked, force_build, locked, yes, wish, project)
        if no_wait:
            cli.out.document({"ready": None, "name": record.name, "engine": record.engine, "url": record.api_url})
            cli.out.line(f"started: {record.api_url}   (./agentbox.sh status tells when it is ready)")
            return
        with cli.out.stage("ready") as stage:
            waited = start.wait(cli, engine, record)
            stage.said = f"boot {waited.verdict['boot_id'][:13]}"
        token = start.keep_token(cli, record, wanted)
        if isinstance(engine, Docker):
            _tidy(cli)
    _say_ready(cli, record, token, waited, engine.protections_absent)


def _start(
    cli: Cli, asked: str, force_build: bool, locked: bool, yes: bool, wish: Wish, project: Path | None
) -> tuple[Engine, BoxRecord, Start]:
    """Stages 1 to 8."""
    out = cli.out
    if wish.registry and (force_build or asked == "process"):
        raise click.UsageError(f"--registry does not go with {'--build' if force_build else '--engine process'}.")
    with out.stage("validate") as stage:
        manifest = validated(cli)
        stage.said = str(cli.manifest)
    if project is not None:
        wish = replace(wish, project=project_folder(project))
    with out.stage("engine") as stage:
        choice = prerequisites.choose_engine(cli, asked)
        stage.said = f"{choice.engine.name} ({choice.because})"
    with out.stage("install") as stage:
        stage.said = prerequisites.install_missing(cli, choice, wish.project, build=not wish.registry, yes=yes)
    with out.stage("daemon") as stage:
        stage.said = prerequisites.start_daemon(choice)
    if wish.project is not None:
        prerequisites.give_project(cli, choice, wish.project, yes=yes)
    stamp = None
    if isinstance(choice.engine, Docker):
        if not wish.registry:
            lock_and_fetch(cli, manifest, locked=locked)
        check(
            choice.engine, start.start_of(cli, manifest, None, wish), cli.known_record()
        )  # before minutes of building
        with out.stage("image") as stage:
            if wish.registry:
                made = image.pull(cli, manifest, wish.registry, test_hooks=wish.test_hooks)
            else:
                made = image.build_and_load(cli, choice.engine, manifest, force=force_build, test_hooks=wish.test_hooks)
            stamp = made.stamp
            stage.said = made.said
    with out.stage("start") as stage:
        wanted = start.start_of(cli, manifest, stamp, wish)
        brought = start.bring_up(cli, choice.engine, wanted)
        stage.said = brought.did
    return choice.engine, brought.record, wanted


def _tidy(cli: Cli) -> None:
    """A box that is ready needs no image of long ago. What cannot be removed now is tried again by the next `up`."""
    try:
        if gone := remove_old_images(cli.state()):
            cli.out.note(f"removed {counted(len(gone), 'image')} of earlier builds")
    except AgentboxError as error:
        cli.out.note(error.message)


def _say_ready(cli: Cli, record: BoxRecord, token: Path, waited: Waited, absent: tuple[str, ...]) -> None:
    out, verdict = cli.out, waited.verdict
    degraded = verdict.get("degraded", [])
    out.document(
        {
            "ready": True, "name": record.name, "engine": record.engine, "url": record.api_url, "token_file": str(token),
            "boot_id": verdict["boot_id"], "plan_digest": verdict["plan_digest"], "image_ref": record.image_ref,
            "seconds_to_ready": round(waited.seconds, 3), "degraded": degraded, "protections_absent": absent,
        }
    )  # fmt: skip
    out.block(f"\nready: {record.api_url}   (admin token: {token})")
    if degraded:
        out.line(f"degraded: {', '.join(degraded)}")
    for line in absent:
        out.line(f"not protected here: {line}")
    out.line("try:")
    out.line('  ./agentbox.sh run -- python3 -c "print(6 * 7)"    one command, as an agent, in the box')
    out.line("  ./agentbox.sh status                             what runs, and whether it is ready")
    out.line("  ./agentbox.sh boot explain                       where the boot's time went")
