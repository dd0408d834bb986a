"""`agentbox bench`: runs the benchmarks and compares with an earlier run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.optional_requirements import install_test_requirements

_DIRECTORY = CHECKOUT / "bench"
_HELPERS = {
    *(
        "measure",
        "conftest",
        "privacy_texts",
        "slot_calls",
        "slot_peers",
        "slot_rooms",
        "slot_stream",
    ),
    *("sandbox_peers", "agents_kills", "leftovers", "ten_load", "ten_writers"),
}
_TOLERANCE = 1.15  # more than 15 % worse than the earlier result is a failure


def bench_names() -> list[str]:
    """Names of the benchmarks in bench/."""
    return sorted(path.stem for path in _DIRECTORY.glob("*.py") if path.stem not in _HELPERS)


@click.command(name="bench")
@click.argument("names", nargs=-1)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Samples per slow claim.",
)
@click.option(
    "--compare",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Compare with an earlier result file.",
)
@click.pass_obj
def command(cli: CliContext, names: tuple[str, ...], runs: int, compare: Path | None) -> int:
    """Run the benchmarks NAMES (default: all).

    Results go to bench/results, samples to a directory that git ignores. Exit 1 if a limit is
    exceeded or a result is 15 % worse.
    """
    selected = bench_names() if not names or "all" in names else list(names)
    if unknown := [name for name in selected if name not in bench_names()]:
        raise AgentboxError(
            f"cannot run {unknown[0]}: unknown benchmark",
            f"Choose one of {', '.join(bench_names())}.",
            exit_code=ExitCode.USAGE,
        )
    install_test_requirements()
    worst = 0
    for name in selected:
        process = subprocess.run(
            [sys.executable, str(_DIRECTORY / f"{name}.py"), "--runs", str(runs)],
            cwd=CHECKOUT,
            check=False,
        )
        worst = max(worst, process.returncode, _check_claims(cli, name, compare))
    return ExitCode.BAD if worst else ExitCode.DONE


def _check_claims(cli: CliContext, name: str, compare: Path | None) -> int:
    result = _DIRECTORY / "results" / f"{name}.json"
    if not result.exists():
        return 1
    claims = _read_claims(result)
    cli.out.document(claims)
    missed = [
        f"{key}: p95 {claim['p95']:.3f} > {claim['must_p95']}"
        for key, claim in claims.items()
        if claim["must_p95"] and claim["p95"] > claim["must_p95"]
    ]
    baseline = _read_claims(compare) if compare else {}
    missed += [
        f"{key}: p50 {claim['p50']:.3f}, was {baseline[key]['p50']:.3f}"
        for key, claim in claims.items()
        if key in baseline and claim["p50"] > baseline[key]["p50"] * _TOLERANCE
    ]
    for line in missed:
        cli.out.error(f"missed: {line}")
    return int(bool(missed))


def _read_claims(path: Path) -> dict[str, dict[str, Any]]:
    return {claim["name"]: claim for claim in json.loads(path.read_text())["claims"]}
