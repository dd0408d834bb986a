"""`agentbox lock`: resolves the packages of the image and of this command line."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.cache import host_cache
from agentbox.host.cli.stages.validate import load_valid_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from agentbox.host.packages.relock import LockUpdate
    from agentbox.plan.lockfile.inputs import LockInputs


@click.command(name="lock")
@click.option(
    "--upgrade", is_flag=True, help="Upgrade the named packages, else all, to the newest versions."
)
@click.option(
    "--check",
    is_flag=True,
    help="Only check, offline, whether the lock matches. Exit 5 if it does not.",
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="S",
    help="Also cover this system: x86_64-linux, aarch64-linux.",
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.pass_obj
def command(
    cli: CliContext, upgrade: bool, check: bool, systems: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """Resolve every package of the image and write agentbox.lock: names, versions, sizes, SHA-256.

    Locked versions are kept while the mirrors serve them, unless --upgrade is given. Uses the
    host's apt, pip and npm with their mirrors, proxies and credentials. Also writes
    requirements.host, .mcp and .test.
    """
    from agentbox.host.packages.lock_inputs import lock_inputs, manifest_skills
    from agentbox.host.packages.relock import LOCK_NAME

    if names and not upgrade:
        raise click.UsageError("NAME requires --upgrade")
    manifest = load_valid_manifest(cli)
    path = cli.manifest.absolute().parent / LOCK_NAME
    skills = manifest_skills(manifest)
    inputs = lock_inputs(manifest, lock=path, systems=systems, skills=skills)
    if check:
        _check_lock(cli, path, inputs)
    else:
        _update_lock(cli, path, inputs, list(names) if upgrade else None)


def _check_lock(cli: CliContext, path: Path, inputs: LockInputs) -> None:
    from agentbox.host.packages.python.host_requirements import stale_files
    from agentbox.host.packages.relock import check_inputs

    check_inputs(path, inputs)
    if stale := stale_files(CHECKOUT):
        raise AgentboxError(
            f"cannot use {' and '.join(stale)}: pyproject.toml requires other packages",
            "Run `agentbox lock`.",
            exit_code=ExitCode.LOCK,
        )
    cli.out.document({"lock": str(path), "fits": True})
    cli.out.line(f"{path.name} matches the manifest")


def _update_lock(
    cli: CliContext, path: Path, inputs: LockInputs, upgrade: list[str] | None
) -> None:
    from agentbox.host.packages.python.host_requirements import update_files
    from agentbox.host.packages.relock import pin_skills, relock

    if upgrade is None and (changed := pin_skills(path, inputs)):
        cli.out.document(
            {"lock": str(path), "systems": inputs.systems, "changes": [], "written": [path.name]}
        )
        cli.out.line(f"{changed}; every package stays as it was locked")
        return
    progress = cli.out.progress()
    with host_cache() as cache:
        update = relock(path, inputs, cache=cache, progress=progress, upgrade=upgrade)
        files = update_files(CHECKOUT, update.lock, progress=progress, upgrade=upgrade)
    _print_result(cli, path, update, files)


def _print_result(cli: CliContext, path: Path, update: LockUpdate, files: tuple[str, ...]) -> None:
    changes = [asdict(change) for change in update.changes.rows]
    written = [*([path.name] if update.written else []), *files]
    cli.out.document(
        {"lock": str(path), "systems": update.lock.systems, "changes": changes, "written": written}
    )
    cli.out.block(update.changes.summary)
    for row in update.changes.rows:
        cli.out.line(f"  {row}")
    cli.out.line(f"wrote {', '.join(written)}" if written else "nothing to write")
