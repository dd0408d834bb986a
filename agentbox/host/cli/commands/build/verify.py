"""`agentbox verify`: rebuilds everything and compares."""

from __future__ import annotations

from dataclasses import asdict

import click

from agentbox.core.errors import ExitCode
from agentbox.core.paths import Paths
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.verify import verify_steps, verify_target
from agentbox.host.engines.registry import engine_by_name


@click.command(name="verify")
@click.option(
    "--quick",
    is_flag=True,
    help="Hash the archive's blobs instead of rebuilding every derivation.",
)
@click.option(
    "--against",
    metavar="FILE|REF",
    help="Compare with this archive or loaded image. [default: the image in docker]",
)
@click.option(
    "--probes",
    is_flag=True,
    help="Only run every artifact probe in the running box.",
)
@click.pass_obj
def command(cli: CliContext, quick: bool, against: str | None, probes: bool) -> int:
    """Recompute the locked files, rendered files, image and the running box's digests, and compare.

    Works offline. Every step runs, even after a difference, and prints same, different (with the
    first path that differs) or absent (nothing to compare). Exit 1 on any difference.
    """
    if probes:
        return _run_probes(cli)
    results = []
    for step in verify_steps(verify_target(cli), quick=quick, reference=against):
        results.append(step)
        cli.out.line(f"{step.name:<8} {step.outcome:<9} {step.said}")
    different = [step for step in results if step.outcome == "different"]
    cli.out.document({"same": not different, "steps": [asdict(step) for step in results]})
    return ExitCode.BAD if different else ExitCode.DONE


def _run_probes(cli: CliContext) -> int:
    record = cli.running_record()
    flags = ("--json",) if cli.out.json else ()
    argv = (str(Paths().python), "-I", "-m", "agentbox.box.probes", *flags)
    return engine_by_name(record.engine).execute(record, argv, terminal=False)
