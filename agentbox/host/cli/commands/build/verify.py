"""`agentbox verify`: derive everything again and compare."""

from __future__ import annotations

from dataclasses import asdict

import click

from agentbox.core.errors import ExitCode
from agentbox.core.paths import Paths
from agentbox.host.cli.context import Cli
from agentbox.host.cli.stages.verifying import steps, subject_of
from agentbox.host.engines.named import engine_named


@click.command(name="verify")
@click.option("--quick", is_flag=True, help="Hash the archive's blobs instead of building every derivation again.")
@click.option(
    "--against", metavar="FILE|REF", help="Compare with this archive or loaded image. [default: what docker has]"
)
@click.option("--probes", is_flag=True, help="Run every artifact probe in the running box, now, and nothing else.")
@click.pass_obj
def command(cli: Cli, quick: bool, against: str | None, probes: bool) -> int:
    """Derive the lock's files, the rendered files, the image and the running box's digests again.

    Works offline. Every step runs, also after a difference, and prints same, different (with the first path that
    differs) or absent (nothing there to compare). Exit 1 on any difference.
    """
    if probes:
        return _probes(cli)
    found = []
    for step in steps(subject_of(cli), quick=quick, other=against):
        found.append(step)
        cli.out.line(f"{step.name:<8} {step.outcome:<9} {step.said}")
    different = [step for step in found if step.outcome == "different"]
    cli.out.document({"same": not different, "steps": [asdict(step) for step in found]})
    return ExitCode.BAD if different else ExitCode.DONE


def _probes(cli: Cli) -> int:
    record = cli.running_record()
    shown = ("--json",) if cli.out.json else ()
    argv = (str(Paths().python), "-I", "-m", "agentbox.box.probes", *shown)
    return engine_named(record.engine).execute(record, argv, terminal=False)
