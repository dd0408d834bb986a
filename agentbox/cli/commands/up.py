"""`agentbox up`: from a manifest to a box that has proven itself ready."""

from __future__ import annotations

from pathlib import Path

import click

from agentbox.cli.context import Cli
from agentbox.cli.stages import image, prerequisites, start
from agentbox.cli.stages.lock import lock_and_fetch
from agentbox.cli.stages.validate import validated
from agentbox.engine.base import Start
from agentbox.engine.choose import NAMES
from agentbox.engine.docker import Docker
from agentbox.engine.project import prepare_project
from agentbox.engine.secrets import collect
from agentbox.errors import AgentboxError, ExitCode


@click.command(name="up")
@click.option(
    "--engine", "asked", type=click.Choice(NAMES), default="auto", show_default=True, help="What runs the box."
)
@click.option(
    "--build", "force_build", is_flag=True, help="Build even if the loaded image was made of the same inputs."
)
@click.option("--locked", is_flag=True, help="Refuse instead of re-locking when agentbox.lock does not fit.")
@click.option("--yes", "-y", is_flag=True, help="Consent to installing the Debian packages that are missing.")
@click.option("--no-wait", is_flag=True, help="Return once the box is started.")
@click.option("--strict", is_flag=True, help="Boot warnings about posture and drift are fatal.")
@click.option("--project", type=click.Path(path_type=Path, file_okay=False), help="A folder of yours as the workspace.")
@click.option("--allow-test-hooks", is_flag=True, help="Build and accept an image with test hooks.")
@click.pass_obj
def command(
    cli: Cli, asked: str, force_build: bool, locked: bool, yes: bool, no_wait: bool, strict: bool,
    project: Path | None, allow_test_hooks: bool,
) -> None:  # fmt: skip
    """Set up what is missing, build the image, start the box and wait until it is ready.

    Every stage has a line; stages with nothing to do say so. A second `up` takes seconds. Ctrl-C at any moment is
    safe: the next `up` goes on from there.
    """
    with cli.state().exclusively():
        _up(cli, asked, force_build, locked, yes, no_wait, strict, project, allow_test_hooks)


def _up(
    cli: Cli, asked: str, force_build: bool, locked: bool, yes: bool, no_wait: bool, strict: bool,
    project: Path | None, hooks: bool,
) -> None:  # fmt: skip
    out, state = cli.out, cli.state()
    with out.stage("validate") as stage:
        manifest = validated(cli)
        stage.said = str(cli.manifest)
    with out.stage("engine") as stage:
        choice = prerequisites.choose_engine(cli, asked)
        stage.said = f"{choice.engine.name} ({choice.because})"
    with out.stage("install") as stage:
        stage.said = prerequisites.install_missing(cli, choice, yes=yes)
    with out.stage("daemon") as stage:
        stage.said = prerequisites.start_daemon(choice)
    stamp = None
    if isinstance(choice.engine, Docker):
        lock_and_fetch(cli, manifest, locked=locked)
        with out.stage("image") as stage:
            made = image.build_and_load(cli, choice.engine, manifest, force=force_build, test_hooks=hooks)
            stamp = made.stamp
            stage.said = f"{stamp.tag} built and loaded" if made.built else "unchanged"
    with out.stage("start") as stage:
        plan = image.plan_of(manifest, cli.lock, test_hooks=hooks)
        record = choice.engine.start(
            Start(
                plan=plan, manifest=manifest.raw, state=state,
                image_ref=stamp.reference if stamp else "", image_id=stamp.image_id if stamp else "",
                project=prepare_project(project, yes=yes) if project else None,
                strict=strict, secrets=collect(plan.secrets, cli.manifest),
            )
        )  # fmt: skip
        state.remember(record)
        stage.said = record.name
    if no_wait:
        return
    with out.stage("ready") as stage:
        waited = start.wait(cli, choice.engine, record)
        stage.said = f"boot {waited.verdict['boot_id'][:13]}"
    token = start.keep_token(cli, choice.engine, record, plan)
    _say_ready(cli, record.api_url, token, waited.verdict.get("degraded", []), choice.engine.protections_absent)


def _say_ready(cli: Cli, url: str, token: Path, degraded: list[str], absent: tuple[str, ...]) -> None:
    out = cli.out
    out.document(
        {"ready": True, "url": url, "token_file": str(token), "degraded": degraded, "protections_absent": absent}
    )
    out.line(f"\nready: {url}   (admin token: {token})")
    if degraded:
        out.line(f"degraded: {', '.join(degraded)}")
    for line in absent:
        out.line(f"not protected here: {line}")
    out.line("try:")
    out.line('  ./agentbox.sh run -- python3 -c "print(6 * 7)"    one command, as an agent, in the box')
    out.line("  ./agentbox.sh status                             what runs, and whether it is ready")
    out.line("  ./agentbox.sh boot explain                       where the boot's time went")


def refuse_hooks() -> AgentboxError:
    """What to raise for an image with test hooks that nobody asked for."""
    return AgentboxError(
        "cannot start an image with test hooks", "Give --allow-test-hooks, for tests only.", exit_code=ExitCode.BAD
    )
