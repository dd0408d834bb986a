"""`agentbox test`: runs the test suites, with real Nix builds and real containers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from agentbox.core.errors import ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize
from agentbox.host.cli.stages.optional_requirements import install_test_requirements
from agentbox.host.cli.stages.test_tools import install_test_tools
from agentbox.host.cli.suites import report
from agentbox.host.cli.suites.catalogue import SUITES, Suite, lanes, timed_suites, with_options
from agentbox.host.cli.suites.init_process import run_under_init
from agentbox.host.cli.suites.runner import Runner

DIRECTORY = CHECKOUT / "build" / "tests"
RESULTS = DIRECTORY / "results.json"
DURATIONS = CHECKOUT / "tests" / "durations.json"


@dataclass(frozen=True)
class SuiteOptions:
    """Options beside the names of the suites."""

    full: bool
    seed: str | None
    slowest: int
    store_durations: bool


@click.command(name="test")
@click.argument("names", nargs=-1, type=click.Choice([suite.name for suite in SUITES] + ["all"]))
@click.option("--full", is_flag=True, help="Run all cases of large matrices, not a sample.")
@click.option("--seed", metavar="TEXT", help="Seed of the sample.  [default: the commit]")
@click.option(
    "--slowest",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="List the N slowest tests.",
)
@click.option(
    "--store-durations", is_flag=True, help="Write tests/durations.json, used to distribute files."
)
@click.option(
    "--all",
    "all_features",
    is_flag=True,
    help="Suite features: try all features, not only a small one, and store the results.",
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME",
    help="Suite features: try this one; may be repeated.",
)
@click.option("--container", is_flag=True, help="Suite stories: also in a container.")
@click.option(
    "--yes",
    "-y",
    is_flag=True,
    help="Consent to installing Debian packages for the suites.",
)
@click.pass_obj
def command(
    cli: CliContext,
    names: tuple[str, ...],
    full: bool,
    seed: str | None,
    slowest: int,
    store_durations: bool,
    all_features: bool,
    features: tuple[str, ...],
    container: bool,
    yes: bool,
) -> int:
    """Run the test suites NAMES (default: all). Exit 1 if one fails.

    lint: style, types, layers. unit: fast. contract: all adapters against their contracts, meshes.
    images: fetches locked packages, builds the image. runtime: real boxes. nix: builds, locks and
    reads images. features: a box with an optional feature, a small one (a minute) unless --all or
    --feature is given; --all takes about two hours and 15 GB of free disk, stores each result
    immediately and resumes after Ctrl-C. stories: two agent CLIs of different vendors, installed by
    npm, in a box (a minute); --container builds an image with both and runs as root (six to ten
    minutes, 4 GB of free disk). e2e: the command line as operators use it: a real package's test
    suite, disasters, kills, interrupts.

    Suites run in three lanes beside each other: without containers; boxes; lint and commands. Tests
    with a bound of wall-clock time run last, two at a time, and those in containers alone.
    build/tests has each suite's output and report, and results.json.
    """
    run_under_init()
    sample_options = (*(["--full"] if full else []), *([f"--sample-seed={seed}"] if seed else []))
    extra_options = {
        "features": _feature_options(all_features, features),
        "stories": ("--container",) if container else (),
    }
    selected = [
        with_options(suite, *sample_options, *extra_options.get(suite.name, ()))
        for suite in SUITES
        if suite.name in names or "all" in names or not names
    ]
    install_test_requirements()
    if any(suite.directories for suite in selected):
        install_test_tools(
            cli, containers=container or any(suite.containers for suite in selected), yes=yes
        )
    results = _run_suites(cli, selected, sample_options)
    _print_report(cli, results, SuiteOptions(full, seed, slowest, store_durations))
    return ExitCode.DONE if all(result.passed for result in results) else ExitCode.BAD


def _feature_options(all_features: bool, names: tuple[str, ...]) -> tuple[str, ...]:
    return (
        *(["--every-feature", "-vv"] if all_features else []),
        *(f"--feature={name}" for name in names),
    )


def _run_suites(
    cli: CliContext, selected: Sequence[Suite], sample_options: Sequence[str]
) -> list[report.SuiteResult]:
    def on_ended(result: report.SuiteResult) -> None:
        if result.output is not None:
            cli.out.note(f"\n{result.suite}\n{result.output.read_text(errors='replace')}")
        cli.out.note(result.table_row)

    runner = Runner(DIRECTORY, on_ended)
    results = runner.run(lanes(selected))
    if timed := [with_options(suite, *sample_options) for suite in timed_suites(selected)]:
        results += runner.run([timed])
    return results


def _print_report(
    cli: CliContext, results: Sequence[report.SuiteResult], options: SuiteOptions
) -> None:
    """Prints the table and the failed, skipped and slowest tests; writes the same as JSON."""
    cli.out.line(report.HEADINGS)
    for result in results:
        cli.out.line(result.table_row)
    for title, lines in (
        ("failed", [line for result in results for line in result.failed]),
        (
            "skipped: requirements not met on this machine",
            [line for result in results for line in result.skipped],
        ),
        (
            "slowest",
            [
                f"{case.seconds:7.1f} s  {case.test_id}"
                for case in report.slowest(results, options.slowest)
            ],
        ),
    ):
        if lines:
            cli.out.line(f"{title}:")
        for line in lines:
            cli.out.line(f"  {line}")
    document = [result.document() for result in results]
    report.write_json(RESULTS, document)
    if options.store_durations:
        report.write_json(
            DURATIONS, {**report.stored_durations(DURATIONS), **report.file_durations(results)}
        )
        cli.out.note(f"wrote {pluralize(len(report.file_durations(results)), 'duration')}")
    cli.out.document(document)
