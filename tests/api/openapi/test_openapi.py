"""The API and its OpenAPI document agree: schemathesis sends requests to a real box as the document
describes them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from sampling import OneOfEach
from support.api_box import TOKEN, ApiBox

from agentbox.core.paths import CHECKOUT

HERE = Path(__file__).parent
SEED = "20260101"
EXAMPLES, ALL_EXAMPLES = "1", "3"  # of each operation, without `--full` and with it
ASKED = os.environ.get("AGENTBOX_SCHEMATHESIS_EXAMPLES", "")  # more of them for a longer run
PHASES = os.environ.get("AGENTBOX_SCHEMATHESIS_PHASES", "coverage,fuzzing,stateful")


@pytest.mark.timeout(3600)
def test_the_document_holds(
    box: ApiBox, tmp_path: Path, request: pytest.FixtureRequest, one_of_each: OneOfEach
) -> None:
    """No response violates the document, invalid requests are refused, and valid ones are accepted.
    A sample is one of each two operations, in the order of their ids."""
    for path, name in ((box.paths.manifest, "agentbox.toml"), (box.paths.lock, "agentbox.lock")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((CHECKOUT / name).read_bytes())
    ids = sorted(_operation_ids(box))
    sample = one_of_each(ids, lambda name: str(ids.index(name) // 2))
    examples = ASKED or (ALL_EXAMPLES if request.config.option.full else EXAMPLES)
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"),
            "run", f"{box.url}/openapi.json", "--header", f"Authorization: Bearer {TOKEN}",
            "--seed", SEED, "--max-examples", examples, "--phases", PHASES, "--continue-on-failure", "--no-color",
            "--generation-database", "none", "--request-timeout", "30",
            *(word for name in sample for word in ("--include-operation-id", name)),
        ],
        env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    asked = re.search(r"(\d+) generated", done.stdout)
    assert asked is not None, done.stdout[-5_000:]
    print(asked[0])
    assert int(asked[1]) > 8 * len(sample), "a run that asks nothing proves nothing"
    assert _bugs(box) == []


def _operation_ids(box: ApiBox) -> Iterator[str]:
    with urlopen(f"{box.url}/openapi.json") as answer:
        document = json.load(answer)
    for methods in document["paths"].values():
        yield from (entry["operationId"] for entry in methods.values() if "operationId" in entry)


def _bugs(box: ApiBox) -> list[str]:
    return [line for line in box.log.read_text().splitlines() if '"request failed"' in line]
