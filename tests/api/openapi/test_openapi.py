"""The API and its OpenAPI document agree: schemathesis sends requests to a real box as the document
describes them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.api_box import TOKEN, ApiBox

from agentbox.core.paths import CHECKOUT

HERE = Path(__file__).parent
SEED = "20260101"
EXAMPLES, ALL_EXAMPLES = "1", "3"  # of each operation, without `--full` and with it
ASKED = os.environ.get("AGENTBOX_SCHEMATHESIS_EXAMPLES", "")  # more of them for a longer run
PHASES = os.environ.get("AGENTBOX_SCHEMATHESIS_PHASES", "coverage,fuzzing,stateful")


@pytest.mark.timeout(3600)
def test_the_document_holds(box: ApiBox, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """No response violates the document, invalid requests are refused, and valid ones are accepted."""
    for path, name in ((box.paths.manifest, "agentbox.toml"), (box.paths.lock, "agentbox.lock")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((CHECKOUT / name).read_bytes())
    examples = ASKED or (ALL_EXAMPLES if request.config.option.full else EXAMPLES)
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"),
            "run", f"{box.url}/openapi.json", "--header", f"Authorization: Bearer {TOKEN}",
            "--seed", SEED, "--max-examples", examples, "--phases", PHASES, "--continue-on-failure", "--no-color",
            "--generation-database", "none", "--request-timeout", "30",
        ],
        env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    asked = re.search(r"(\d+) generated", done.stdout)
    assert asked is not None, done.stdout[-5_000:]
    print(asked[0])
    assert int(asked[1]) > 1000, "a run that asks nothing proves nothing"
    assert _bugs(box) == []


def _bugs(box: ApiBox) -> list[str]:
    return [line for line in box.log.read_text().splitlines() if '"request failed"' in line]
