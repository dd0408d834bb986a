"""`agentbox fmt`: formats the sources and the lock file."""

from __future__ import annotations

from pathlib import Path

import click

from agentbox.core.errors import ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize


@click.command(name="fmt")
@click.option("--check", is_flag=True, help="Only list the files that would change; exit 1 if any.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True, resolve_path=True))
@click.pass_obj
def command(cli: CliContext, check: bool, paths: tuple[Path, ...]) -> int:
    """Format the sources of this checkout and agentbox.lock; with PATHS only files below them.

    UTF-8, LF, no trailing blanks, one newline at the end of a file; the lock as `agentbox lock`
    writes it. `nix fmt` does the same. Python code is formatted by ruff.
    """
    from agentbox.host.image.source_format import formatted, unformatted_files

    unformatted = [
        path
        for path in unformatted_files(CHECKOUT)
        if not paths or any(path.is_relative_to(root) for root in paths)
    ]
    names = [str(path.relative_to(CHECKOUT)) for path in unformatted]
    if not check:
        for path in unformatted:
            path.write_bytes(formatted(path))
    cli.out.document({"changed": [] if check else names, "unformed": names if check else []})
    for name in names:
        cli.out.line(name)
    cli.out.line(f"{pluralize(len(names), 'file')} {'to change' if check else 'changed'}")
    return ExitCode.BAD if check and names else ExitCode.DONE
