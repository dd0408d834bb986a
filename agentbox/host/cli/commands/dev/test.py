"""`agentbox test`: every suite, for real: real Nix builds, real containers, nothing that passes by skipping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from agentbox.core.errors import ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import Cli
from agentbox.host.cli.output import counted
from agentbox.host.cli.stages.test_requirements import install_requirements
from agentbox.host.cli.stages.tools import install_test_tools
from agentbox.host.cli.suites import report
from agentbox.host.cli.suites.catalogue import SUITES, Suite, lanes, timed_suites, with_options
from agentbox.host.cli.suites.init import run_below_init
from agentbox.host.cli.suites.running import Runner

FOLDER = CHECKOUT / "build" / "tests"
RESULTS = FOLDER / "results.json"
DURATIONS = CHECKOUT / "tests" / "durations.json"


@dataclass(frozen=True)
class Wish:
    """What was asked for beside the names of suites."""

    full: bool
    seed: str | None
    slowest: int
    store_durations: bool


@click.command(name="test")
@click.argument("names", nargs=-1, type=click.Choice([suite.name for suite in SUITES] + ["all"]))
@click.option("--full", is_flag=True, help="Every case of every matrix, not a sample of the large ones.")
@click.option("--seed", metavar="TEXT", help="Which sample of the large matrices.  [default: the commit]")
@click.option("--slowest", type=click.IntRange(0), default=0, metavar="N", help="Name the N slowest tests at the end.")
@click.option("--store-durations", is_flag=True, help="Write tests/durations.json, by which files are spread.")
@click.option("--all", "every", is_flag=True, help="Suite features: try each, not only a small one, and keep the rows.")
@click.option("--feature", "some", multiple=True, metavar="NAME", help="Suite features: try this one; repeatable.")
@click.option("--container", is_flag=True, help="Suite stories: in a container too.")
@click.option("--yes", "-y", is_flag=True, help="Consent to installing the Debian packages that the suites need.")
@click.pass_obj
def command(
    cli: Cli, names: tuple[str, ...], full: bool, seed: str | None, slowest: int, store_durations: bool, every: bool,
    some: tuple[str, ...], container: bool, yes: bool,
) -> int:  # fmt: skip
    """Run the test suites NAMES (default: all). Exit 1 if one fails.

    lint: style, types, layers. unit: fast. contract: every adapter against its clauses, meshes. images: fetches what is
    locked, builds the image. runtime: real boxes. nix: what builds, locks and reads images.
    features: a box with an optional feature, a small one (a minute) unless --all or --feature says which; --all takes some
    two hours and 15 GB of free disk, keeps each row as soon as it is known, and after Ctrl-C goes on where it was.
    stories: two agent CLIs of different makers, fetched by npm, at work in a box (a minute); --container builds an image
    with both and tells it all there, as root (six to ten minutes, 4 GB of free disk).
    e2e: the commands as an operator types them: a real package's own test suite, disasters, kills, interrupts.

    Suites run in three lanes beside each other: without containers; boxes; commands. Tests with a bound of wall-clock time run
    last, two at a time, and those in containers alone. build/tests has each suite's output and report, and results.json.
    """
    run_below_init()
    sampling = (*(["--full"] if full else []), *([f"--sample-seed={seed}"] if seed else []))
    more = {"features": _features(every, some), "stories": ("--container",) if container else ()}
    chosen = [
        with_options(suite, *sampling, *more.get(suite.name, ()))
        for suite in SUITES
        if suite.name in names or "all" in names or not names
    ]
    install_requirements()
    if any(suite.folders for suite in chosen):
        install_test_tools(cli, containers=container or any(suite.containers for suite in chosen), yes=yes)
    results = _run(cli, chosen, sampling)
    _report(cli, results, Wish(full, seed, slowest, store_durations))
    return ExitCode.DONE if all(result.passed for result in results) else ExitCode.BAD


def _features(every: bool, some: tuple[str, ...]) -> tuple[str, ...]:
    return (*(["--every-feature", "-vv"] if every else []), *(f"--feature={name}" for name in some))


def _run(cli: Cli, chosen: Sequence[Suite], sampling: Sequence[str]) -> list[report.Result]:
    def ended(result: report.Result) -> None:
        if result.output is not None:
            cli.out.note(f"\n{result.suite}\n{result.output.read_text(errors='replace')}")
        cli.out.note(result.row)

    runner = Runner(FOLDER, ended)
    results = runner.run(lanes(chosen))
    if timed := [with_options(suite, *sampling) for suite in timed_suites(chosen)]:
        results += runner.run([timed])
    return results


def _report(cli: Cli, results: Sequence[report.Result], wish: Wish) -> None:
    """The table, and below it what failed, was skipped and took longest; the same as JSON, kept and, if asked, shown."""
    cli.out.line(report.HEADINGS)
    for result in results:
        cli.out.line(result.row)
    for title, lines in (
        ("failed", [line for result in results for line in result.failed]),
        ("skipped: this machine does not give what their subject needs", [line for result in results for line in result.skipped]),
        ("slowest", [f"{case.seconds:7.1f} s  {case.place}" for case in report.slowest(results, wish.slowest)]),
    ):  # fmt: skip
        if lines:
            cli.out.line(f"{title}:")
        for line in lines:
            cli.out.line(f"  {line}")
    document = [result.document() for result in results]
    report.write_json(RESULTS, document)
    if wish.store_durations:
        report.write_json(DURATIONS, {**report.known_durations(DURATIONS), **report.durations(results)})
        cli.out.note(f"wrote {counted(len(report.durations(results)), 'duration')}")
    cli.out.document(document)
