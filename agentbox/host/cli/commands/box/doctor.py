"""`agentbox doctor`: checks this host and the running box."""

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
    from agentbox.host.doctor.check_context import CheckContext
    from agentbox.host.doctor.check_result import DoctorReport

_FORMATS = ("text", "json", "sarif", "junit")


@click.command(
    name="doctor",
    epilog="Exit codes: 0 no failures (notes and warnings allowed); 1 a check failed; 2 the "
    "manifest"
    " cannot be read; 3 --fix without a terminal and without --yes; 8 --attack while no box runs."
    " With --attack 1 means that an attack was not stopped or could not be tried.",
)
@click.option(
    "--fix",
    is_flag=True,
    help="Apply available fixes after confirmation, then check again.",
)
@click.option(
    "--attack",
    is_flag=True,
    help="Instead, let agents of the running box try to break out.",
)
@click.option("--yes", "-y", is_flag=True, help="With --fix: consent to every fix.")
@click.option(
    "--engine",
    "engine_name",
    type=click.Choice(ENGINE_NAMES),
    default="auto",
    show_default=True,
    help="The engine that would run the box.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.pass_obj
def command(
    cli: CliContext, fix: bool, yes: bool, attack: bool, engine_name: str, output_format: str
) -> int:
    """Check whether this host can run a box, and whether the running box matches its plan.

    Checks engine, compose, Nix, kernel, Landlock, seccomp, cgroups, limits, memory, disk, ports,
    clocks, state directory, stale files, and each hardening setting with its CIS and PSS ids.

    With --attack, agents of the default profile run a suite of attacks and report which layer
    stopped each. It takes about a minute, exhausts the agents' limits and damages nothing.
    """
    if attack:
        return _attack(cli, output_format)
    from agentbox.host.doctor.catalogue import run_checks
    from agentbox.host.doctor.fixes import apply_fixes

    if fix and not yes and not sys.stdin.isatty():
        raise AgentboxError(
            "cannot confirm fixes: stdin is not a terminal",
            "Give --yes, or omit --fix.",
            exit_code=ExitCode.PREREQUISITE,
        )
    report = run_checks(_build_host(cli, engine_name))
    if fix and apply_fixes(
        report,
        lambda question: yes or click.confirm(question, default=False, err=True),
        cli.out.note,
    ):
        report = run_checks(_build_host(cli, engine_name))
    print_report(cli, report, output_format)
    return report.exit_code


def _attack(cli: CliContext, output_format: str) -> int:
    """Runs the attacks. Raises AgentboxError: exit 8 if no box runs, 1 if it starts no agents."""
    from pathlib import Path

    from agentbox.core.paths import Paths
    from agentbox.host.doctor.attack_runner import run_attack, target_info

    record = cli.running_record()
    paths = Paths(Path(record.root)) if record.root else Paths()
    cli.out.note("running attacks as agents of the box: about a minute")
    with cli.client() as client:
        report = run_attack(client, target_info(_build_host(cli, record.engine).plan, paths))
    print_report(cli, report, output_format)
    return report.exit_code


def print_report(cli: CliContext, report: DoctorReport, output_format: str) -> None:
    """Prints the report in the given format; `--json` means json."""
    from agentbox.host.doctor.formats import junit, report_data, sarif, text

    if cli.json or output_format == "json":
        click.echo(json.dumps(report_data.report_data(report), indent=2))
    elif output_format == "sarif":
        click.echo(json.dumps(sarif.render_sarif(report), indent=2))
    elif output_format == "junit":
        click.echo(junit.render_junit(report), nl=False)
    else:
        cli.out.block(text.render_text(report))


def _build_host(cli: CliContext, engine_name: str) -> CheckContext:
    """Builds the context of the checks. Raises AgentboxError for an unreadable manifest or lock."""
    from agentbox.host.cli.stages.image import plan_for
    from agentbox.host.doctor.check_context import CheckContext

    manifest, record = cli.load_manifest(), cli.find_record()
    test_hooks = record is not None and record.test_hooks
    plan = plan_for(manifest, cli.lock, test_hooks=test_hooks)
    return CheckContext(
        plan=plan,
        state=cli.state(),
        engine=select_engine(engine_name, record).engine,
        record=record,
    )
