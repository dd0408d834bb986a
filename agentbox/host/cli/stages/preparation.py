"""Stages 1 to 6: everything that a start needs, while nothing of the box has changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages import image, prerequisites, start
from agentbox.host.cli.stages.lock_and_fetch import lock_and_fetch, pin_manifest_skills
from agentbox.host.cli.stages.start import UpOptions
from agentbox.host.cli.stages.validate import load_valid_manifest
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.engine_choice import Engine
from agentbox.host.engines.reconcile import check
from agentbox.host.engines.workspace_permissions import project_directory

if TYPE_CHECKING:
    from agentbox.host.engines.base import StartSpec


def prepare_start(
    cli: CliContext,
    engine_name: str,
    *,
    force_build: bool,
    locked: bool,
    yes: bool,
    options: UpOptions,
    project: Path | None,
) -> tuple[Engine, StartSpec]:
    """Runs the stages before the start: the engine with its prerequisites, and the image."""
    out = cli.out
    if options.registry and (force_build or engine_name == "process"):
        raise click.UsageError(
            "--registry cannot be combined with "
            f"{'--build' if force_build else '--engine process'}."
        )
    with out.stage("validate") as stage:
        manifest = load_valid_manifest(cli)
        stage.result = str(cli.manifest)
    if project is not None:
        options = replace(options, project=project_directory(project))
    with out.stage("engine") as stage:
        choice = prerequisites.choose_engine(cli, engine_name)
        stage.result = f"{choice.engine.name} ({choice.reason})"
    with out.stage("install") as stage:
        stage.result = prerequisites.install_missing(
            cli, choice, options.project, build=not options.registry, yes=yes
        )
    with out.stage("daemon") as stage:
        stage.result = prerequisites.start_daemon(choice)
    if options.project is not None:
        prerequisites.grant_project(cli, choice, options.project, yes=yes)
    if not locked:
        pin_manifest_skills(cli, manifest)
    if isinstance(choice.engine, DockerEngine):
        if not options.registry:
            lock_and_fetch(cli, manifest, locked=locked)
        spec = start.spec_without_origin(cli, manifest, options, choice.engine.name)
        check(choice.engine, spec, cli.find_record())  # before minutes of building
        with out.stage("image") as stage:
            if options.registry:
                prepared = image.pull_image(
                    cli, manifest, options.registry, test_hooks=options.test_hooks
                )
            else:
                prepared = image.build_and_load(
                    cli, choice.engine, manifest, force=force_build, test_hooks=options.test_hooks
                )
            stage.result = prepared.summary
        return choice.engine, start.with_origin(spec, prepared.stamp, options)
    return choice.engine, start.start_spec(cli, manifest, options, choice.engine.name)
