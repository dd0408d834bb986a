"""`agentbox fmt`: the sources and the lock in their one form."""

from __future__ import annotations

from pathlib import Path

import click

from agentbox.core.errors import ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize


@click.command(name="fmt")
@click.option(
    "--check", is_flag=True, help="Change nothing; exit 1 and name the files that would change."
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True, resolve_path=True))
@click.pass_obj
def command(cli: CliContext, check: bool, paths: tuple[Path, ...]) -> int:
    """Put the sources of this checkout and agentbox.lock into their one form; with PATHS only what lies there.

    UTF-8, LF, no blanks at line ends, one newline at the end of a file; the lock as `agentbox lock` writes it. `nix fmt`
    is the same. Python's own style is ruff's.
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
