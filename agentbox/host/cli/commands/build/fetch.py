"""`agentbox fetch`: downloads the locked files into the Nix store."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.cache import host_cache


@click.command(name="fetch")
@click.option(
    "--offline",
    is_flag=True,
    help="Use local files only. Exit 4 with the names of missing files.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Take files from this directory first.",
)
@click.option(
    "--to",
    "target",
    type=click.Path(path_type=Path, file_okay=False),
    help="Copy every file to this directory, for another machine.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 32), default=8, show_default=True, help="Concurrent downloads."
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="S",
    help="For an image of this system. [default: this machine's]",
)
@click.pass_obj
def command(
    cli: CliContext,
    offline: bool,
    source: Path | None,
    target: Path | None,
    jobs: int,
    systems: tuple[str, ...],
) -> None:
    """Download every package of agentbox.lock, verify it, and add it to the Nix store.

    After this a build needs no network. An interrupted fetch resumes. Files come from the mirrors
    that this host's apt, pip and npm use. For a machine without network: `fetch --to DIR` here,
    `fetch --from DIR` there.
    """
    from agentbox.host.packages.lock_ensurer import lock_path
    from agentbox.host.packages.store.fetch import fetch_all
    from agentbox.plan.lockfile.reader import parse_lock

    cli.use_network(cli.load_manifest())
    lock = parse_lock(lock_path(cli.manifest))
    with host_cache() as cache:
        result = fetch_all(
            lock,
            cache=cache,
            progress=cli.out.progress(),
            systems=systems,
            offline=offline,
            source=source,
            target=target,
            jobs=jobs,
        )
    cli.out.document(asdict(result))
    cli.out.block(result.summary)
    if target is not None:
        cli.out.line(f"copied {result.total} files and the lock to {target}")
