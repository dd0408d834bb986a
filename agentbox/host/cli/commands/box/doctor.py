"""`agentbox doctor`: is this host fit for a box, and is the box as its plan promises."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import Cli
from agentbox.host.engines.choose import choose
from agentbox.host.engines.named import NAMES

if TYPE_CHECKING:
    from agentbox.host.doctor.host import Host
    from agentbox.host.doctor.row import Scorecard

_FORMS = ("text", "json", "sarif", "junit")


@click.command(
    name="doctor",
    epilog="Exit codes: 0 nothing is bad (notes and warnings may be there); 1 something is bad; 2 the manifest cannot be"
    " read; 3 --fix without a terminal and without --yes; 8 --attack and no box runs. With --attack 1 says that a line was"
    " not stopped, or could not be tried.",
)
@click.option("--fix", is_flag=True, help="Ask before each repair that can be made here, make it, and look again.")
@click.option("--attack", "attacked", is_flag=True, help="Instead: let agents of the running box try to break out.")
@click.option("--yes", "-y", is_flag=True, help="With --fix: consent to every repair.")
@click.option(
    "--engine", "asked", type=click.Choice(NAMES), default="auto", show_default=True, help="What would run the box."
)
@click.option(
    "--format", "form", type=click.Choice(_FORMS), default="text", show_default=True, help="How the result is written."
)
@click.pass_obj
def command(cli: Cli, fix: bool, yes: bool, attacked: bool, asked: str, form: str) -> int:
    """Say whether this host is fit for a box, and whether the box that runs is as its plan promises.

    Engine, compose, Nix, kernel, Landlock, seccomp, control groups, limits, memory, disk, ports,
    clocks, the state folder, what is left over, and each line of hardening with its CIS and PSS ids.

    With --attack agents of the default profile try what a hostile one would, a line each, and the answer
    says which layer stopped it. It takes a minute, uses up what it can, and harms nothing that it reaches.
    """
    if attacked:
        return _attack(cli, form)
    from agentbox.host.doctor.catalogue import examine
    from agentbox.host.doctor.repairing import repair

    if fix and not yes and not sys.stdin.isatty():
        raise AgentboxError(
            "cannot ask before each repair: there is no terminal", "Give --yes, or leave --fix out.",
            exit_code=ExitCode.PREREQUISITE,
        )  # fmt: skip
    card = examine(_host(cli, asked))
    if fix and repair(card, lambda question: yes or click.confirm(question, default=False, err=True), cli.out.note):
        card = examine(_host(cli, asked))
    show(cli, card, form)
    return card.exit_code


def _attack(cli: Cli, form: str) -> int:
    """Raises AgentboxError: exit 8 when no box runs, 1 when it starts no agents."""
    from pathlib import Path

    from agentbox.core.paths import Paths
    from agentbox.host.doctor.attacking import attack, facts_of

    record = cli.running_record()
    paths = Paths(Path(record.root)) if record.root else Paths()
    cli.out.note("agents of the box try to break out: about a minute")
    with cli.client() as client:
        card = attack(client, facts_of(_host(cli, record.engine).plan, paths))
    show(cli, card, form)
    return card.exit_code


def show(cli: Cli, card: Scorecard, form: str) -> None:
    """Writes the scorecard on stdout in that form; `--json` means json."""
    from agentbox.host.doctor.formats import junit, plain, sarif, text

    if cli.json or form == "json":
        click.echo(json.dumps(plain.plain(card), indent=2))
    elif form == "sarif":
        click.echo(json.dumps(sarif.sarif(card), indent=2))
    elif form == "junit":
        click.echo(junit.junit(card), nl=False)
    else:
        cli.out.block(text.text(card))


def _host(cli: Cli, asked: str) -> Host:
    """Raises AgentboxError for a manifest or a lock that cannot be read."""
    from agentbox.host.cli.stages.image import plan_of
    from agentbox.host.doctor.host import Host

    manifest, record = cli.load_manifest(), cli.known_record()
    hooks = record is not None and record.test_hooks
    plan = plan_of(manifest, cli.lock, test_hooks=hooks)
    return Host(plan=plan, state=cli.state(), engine=choose(asked, record).engine, record=record)
