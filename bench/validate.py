"""Schema and rules over a manifest, inside and as a whole process, beside `tombi lint` over the same file and
schema. `python bench/validate.py` keeps the numbers."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Claim, measure_seconds, write_results

from agentbox.core.paths import CHECKOUT, environment
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.load import load, parse
from agentbox.manifest.rules.engine import run_rules
from agentbox.manifest.schema.generator import PUBLISHED

INSIDE_RUNS = 200
SHIPPED = CHECKOUT / "agentbox.toml"
SUBJECTS = (("shipped", SHIPPED, 60), ("full", CHECKOUT / "tests/rules/full.toml", 150))
PEER = "tombi lint, shipped manifest, whole process"
WHOLE = (
    (
        "python -m agentbox config validate, whole process",
        [sys.executable, "-m", "agentbox", "config", "validate"],
    ),
    (
        "./agentbox.sh config validate, whole process",
        [str(CHECKOUT / "agentbox.sh"), "config", "validate"],
    ),
)
LINT = [str(Path(sys.executable).with_name("tombi")), "lint", "--offline"]


def inside(name: str, path: Path, must: float) -> Claim:
    """Milliseconds of one run: parse, places, schema, every rule."""
    features, data = load_features(), load(path).raw
    run_rules(parse(data, name), features=features)  # imports and compiles
    samples = [
        1000 * measure_seconds(lambda: run_rules(parse(data, name), features=features))
        for _ in range(INSIDE_RUNS)
    ]
    conditions = f"{INSIDE_RUNS} runs, warm"
    return Claim(
        f"config validate, {name} manifest, inside",
        "ms",
        samples,
        must_p95=must,
        conditions=conditions,
    )


def processes(commands: Sequence[Sequence[str]], runs: int) -> list[list[float]]:
    """Milliseconds from start to exit 0 of each command, in turns, so that another load of the machine meets all alike.

    Compiled modules are written before the first sample, as any earlier call would have done.
    """
    clean = {
        name: value for name, value in environment().items() if name != "PYTHONDONTWRITEBYTECODE"
    }

    def once(command: Sequence[str]) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=CHECKOUT, env=clean)

    for command in commands:
        once(command)
    samples: list[list[float]] = [[] for _ in commands]
    for _ in range(runs):
        for command, kept in zip(commands, samples, strict=True):
            kept.append(1000 * measure_seconds(lambda command=command: once(command)))
    return samples


def whole(runs: int) -> list[Claim]:
    """The command, through the starting script too, and the peer."""
    samples = processes([*(command for _, command in WHOLE), [*LINT, str(SHIPPED)]], runs)
    ours = [
        Claim(
            name,
            "ms",
            kept,
            must_p95=250,
            conditions=f"{runs} runs, compiled modules at hand",
            peer=PEER,
        )
        for (name, _), kept in zip(WHOLE, samples[:-1], strict=True)
    ]
    does = {"does": "schema only, no rules"}
    return [*ours, Claim(PEER, "ms", samples[-1], conditions=f"{runs} runs, offline", extra=does)]


def peer_reads_the_schema() -> None:
    """Raises SystemExit unless the peer refuses what only the schema refuses."""
    with TemporaryDirectory() as folder:
        spoilt = Path(folder) / "agentbox.toml"
        text = SHIPPED.read_text().replace("./schema/", f"{CHECKOUT}/schema/")
        spoilt.write_text(text.replace("schema_version = 1", 'schema_version = 1\nzebra = "x"'))
        if (
            subprocess.run([*LINT, str(spoilt)], capture_output=True, check=False).returncode
            == os.EX_OK
        ):
            raise SystemExit(
                f"tombi takes a key that is not in {PUBLISHED.name}: it measures something else"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    wanted = parser.parse_args().runs
    peer_reads_the_schema()
    write_results("validate", [*(inside(*subject) for subject in SUBJECTS), *whole(wanted)])
