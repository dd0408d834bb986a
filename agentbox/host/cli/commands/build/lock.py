"""`agentbox lock`: resolves the packages of the image, and of this command line, and writes what was found."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import Cli
from agentbox.host.cli.stages.cache import host_cache
from agentbox.host.cli.stages.validate import validated

if TYPE_CHECKING:
    from pathlib import Path

    from agentbox.host.packages.relock import Relocked
    from agentbox.plan.lockfile.inputs import Inputs


@click.command(name="lock")
@click.option("--upgrade", is_flag=True, help="Take the newest versions: of the packages named, else of all.")
@click.option("--check", is_flag=True, help="Only say, offline, whether the lock fits. Exit 5 if it does not.")
@click.option(
    "--system", "systems", multiple=True, metavar="S", help="Cover this system too: x86_64-linux, aarch64-linux."
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.pass_obj
def command(cli: Cli, upgrade: bool, check: bool, systems: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Resolve every package of the image and write agentbox.lock: names, versions, sizes, SHA-256.

    Locked versions are kept while the mirrors serve them, unless you ask to --upgrade. The host's own apt, pip and npm
    are asked, so their mirrors, proxies and credentials hold here too. Also writes requirements.host and
    requirements.test.
    """
    from agentbox.host.packages.relock import LOCK_NAME
    from agentbox.host.packages.wanted import inputs_of

    if names and not upgrade:
        raise click.UsageError("NAME goes with --upgrade")
    manifest = validated(cli)
    path = cli.manifest.absolute().parent / LOCK_NAME
    inputs = inputs_of(manifest, lock=path, systems=systems)
    if check:
        _check(cli, path, inputs)
    else:
        _lock(cli, path, inputs, list(names) if upgrade else None)


def _check(cli: Cli, path: Path, inputs: Inputs) -> None:
    from agentbox.host.packages.python.hostfiles import stale_files
    from agentbox.host.packages.relock import check_inputs

    check_inputs(path, inputs)
    if stale := stale_files(CHECKOUT):
        raise AgentboxError(
            f"cannot use {' and '.join(stale)}: pyproject.toml asks for other packages",
            "Run `agentbox lock`.",
            exit_code=ExitCode.LOCK,
        )
    cli.out.document({"lock": str(path), "fits": True})
    cli.out.line(f"{path.name} fits the manifest")


def _lock(cli: Cli, path: Path, inputs: Inputs, upgrade: list[str] | None) -> None:
    from agentbox.host.packages.python.hostfiles import update_files
    from agentbox.host.packages.relock import relock

    progress = cli.out.progress()
    with host_cache() as cache:
        done = relock(path, inputs, cache=cache, progress=progress, upgrade=upgrade)
        files = update_files(CHECKOUT, done.lock, progress=progress, upgrade=upgrade)
    _say(cli, path, done, files)


def _say(cli: Cli, path: Path, done: Relocked, files: tuple[str, ...]) -> None:
    changes = [asdict(row) for row in done.changes.rows]
    written = [*([path.name] if done.written else []), *files]
    cli.out.document({"lock": str(path), "systems": done.lock.systems, "changes": changes, "written": written})
    cli.out.block(done.changes.summary)
    for row in done.changes.rows:
        cli.out.line(f"  {row}")
    cli.out.line(f"wrote {', '.join(written)}" if written else "nothing to write")
