"""`agentbox completion`: scripts that complete the command line in a shell."""

from __future__ import annotations

import click

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.completion.names import KINDS
from agentbox.host.cli.context import CliContext

_GIVE_UP_SECONDS = 0.3


@click.group(name="completion")
def command() -> None:
    """Print the completion script of a shell: bash, zsh, fish.

    Verbs and flags are in the script. Ids and names are asked from the running box.
    """


@command.command()
@click.pass_obj
def bash(cli: CliContext) -> None:
    """Print the script for bash: source <(agentbox completion bash)."""
    _print_script(cli, "bash")


@command.command()
@click.pass_obj
def zsh(cli: CliContext) -> None:
    """Print the script for zsh, to be read after compinit: source <(agentbox completion zsh)."""
    _print_script(cli, "zsh")


@command.command()
@click.pass_obj
def fish(cli: CliContext) -> None:
    """Print the script for fish: agentbox completion fish | source."""
    _print_script(cli, "fish")


@command.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("prefix", default="")
@click.pass_obj
def ids(cli: CliContext, kind: str, prefix: str) -> None:
    """Print names of a KIND that begin with PREFIX, for the scripts.

    Prints nothing on an error, or after 300 ms.
    """
    import os
    import signal

    from agentbox.contracts.routes.request_line import InvalidUrl
    from agentbox.host.cli.completion.names import names

    signal.signal(signal.SIGALRM, lambda _number, _frame: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, _GIVE_UP_SECONDS)
    try:
        with cli.client() as client:
            found = names(client, kind, prefix)
    except (AgentboxError, InvalidUrl):
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    for name in found:
        cli.out.line(name)


def _print_script(cli: CliContext, shell: str) -> None:
    from agentbox.host.cli.completion.script import script

    cli.out.raw(script(shell).rstrip("\n"))
