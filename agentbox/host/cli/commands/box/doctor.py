"""`agentbox doctor`: is this host fit for a box, and is the box as its plan promises."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.engines.engine_choice import select_engine
from agentbox.host.engines.registry import ENGINE_NAMES

if TYPE_CHECKING:
    from agentbox.host.doctor.check_result import DoctorReport
    from agentbox.host.doctor.host import Host

_FORMATS = ("text", "json", "sarif", "junit")


@click.command(
    name="doctor",
    epilog="Exit codes: 0 nothing is bad (notes and warnings may be there); 1 something is bad; 2 the manifest cannot be"
    " read; 3 --fix without a terminal and without --yes; 8 --attack and no box runs. With --attack 1 says that a line was"
    " not stopped, or could not be tried.",
)
@click.option(
    "--fix",
    is_flag=True,
    help="Ask before each repair that can be made here, make it, and look again.",
)
@click.option(
    "--attack",
    "attacked",
    is_flag=True,
    help="Instead: let agents of the running box try to break out.",
)
@click.option("--yes", "-y", is_flag=True, help="With --fix: consent to every repair.")
@click.option(
    "--engine",
    "asked",
    type=click.Choice(ENGINE_NAMES),
    default="auto",
    show_default=True,
    help="What would run the box.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="How the result is written.",
)
@click.pass_obj
def command(cli: CliContext, fix: bool, yes: bool, attacked: bool, asked: str, form: str) -> int:
    """Say whether this host is fit for a box, and whether the box that runs is as its plan promises.

    Engine, compose, Nix, kernel, Landlock, seccomp, control groups, limits, memory, disk, ports,
    clocks, the state folder, what is left over, and each line of hardening with its CIS and PSS ids.

    With --attack agents of the default profile try what a hostile one would, a line each, and the answer
    says which layer stopped it. It takes a minute, uses up what it can, and harms nothing that it reaches.
    """
    if attacked:
        return _attack(cli, form)
    from agentbox.host.doctor.catalogue import run_checks
    from agentbox.host.doctor.fixes import apply_fixes

    if fix and not yes and not sys.stdin.isatty():
        raise AgentboxError(
            "cannot ask before each repair: there is no terminal",
            "Give --yes, or leave --fix out.",
            exit_code=ExitCode.PREREQUISITE,
        )
    report = run_checks(_build_host(cli, asked))
    if fix and apply_fixes(
        report,
        lambda question: yes or click.confirm(question, default=False, err=True),
        cli.out.note,
    ):
        report = run_checks(_build_host(cli, asked))
    print_report(cli, report, form)
    return report.exit_code


def _attack(cli: CliContext, output_format: str) -> int:
    """Raises AgentboxError: exit 8 when no box runs, 1 when it starts no agents."""
    from pathlib import Path

    from agentbox.core.paths import Paths
    from agentbox.host.doctor.attack_runner import run_attack, target_info

    record = cli.running_record()
    paths = Paths(Path(record.root)) if record.root else Paths()
    cli.out.note("agents of the box try to break out: about a minute")
    with cli.client() as client:
        report = run_attack(client, target_info(_build_host(cli, record.engine).plan, paths))
    print_report(cli, report, output_format)
    return report.exit_code


def print_report(cli: CliContext, report: DoctorReport, output_format: str) -> None:
    """Writes the scorecard on stdout in that form; `--json` means json."""
    from agentbox.host.doctor.formats import junit, report_data, sarif, text

    if cli.json or output_format == "json":
        click.echo(json.dumps(report_data.report_data(report), indent=2))
    elif output_format == "sarif":
        click.echo(json.dumps(sarif.render_sarif(report), indent=2))
    elif output_format == "junit":
        click.echo(junit.render_junit(report), nl=False)
    else:
        cli.out.block(text.render_text(report))


def _build_host(cli: CliContext, engine_name: str) -> Host:
    """Raises AgentboxError for a manifest or a lock that cannot be read."""
    from agentbox.host.cli.stages.image import plan_for
    from agentbox.host.doctor.host import Host

    manifest, record = cli.load_manifest(), cli.find_record()
    test_hooks = record is not None and record.test_hooks
    plan = plan_for(manifest, cli.lock, test_hooks=test_hooks)
    return Host(
        plan=plan,
        state=cli.state(),
        engine=select_engine(engine_name, record).engine,
        record=record,
    )
