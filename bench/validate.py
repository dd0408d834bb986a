"""Schema and rules over a manifest, without imports and file reading (rules.md 3). `python bench/validate.py` keeps the numbers."""

from pathlib import Path

from measure import Claim, keep, seconds_of

from agentbox.features import load_features
from agentbox.manifest import load, parse
from agentbox.rules import run
from agentbox.settings import CHECKOUT

RUNS = 200
SUBJECTS = (("shipped", CHECKOUT / "agentbox.toml", 60), ("full", CHECKOUT / "tests/rules/full.toml", 150))


def claim(name: str, path: Path, must: float) -> Claim:
    """Milliseconds of one run: parse, places, schema, every rule."""
    features, data = load_features(), load(path).raw
    run(parse(data, name), features=features)  # imports and compiles
    samples = [1000 * seconds_of(lambda: run(parse(data, name), features=features)) for _ in range(RUNS)]
    return Claim(f"config validate, {name} manifest", "ms", samples, must_p95=must, conditions=f"{RUNS} runs, warm")


if __name__ == "__main__":
    keep("validate", [claim(*subject) for subject in SUBJECTS])
