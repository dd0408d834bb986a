"""External validators find nothing in the compose file: its schema and compose-lint. The installed
Compose reads it in every real box; RC-025 runs the style checker over the golden files."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from support.plans import manifest_bytes, plan_of

from agentbox.plan.render.files import compose_files

IMAGE = "agentbox:0123456789ab@sha256:" + "a" * 64
SCHEMA = Path(__file__).parents[2] / "data/compose-spec.json"
MANIFESTS = {
    "default": "",
    "other values": (
        'meta = { schema_version = 1, name = "worker-7" }\n'
        '[resources]\ncpus = 0.5\nmemory = "768MiB"\n[api]\nport = 8000\npublish_address = "::1"\n'
        '[observability]\notlp_endpoint = "http://collector:4318"\n'
    ),
    "no secret": '[api]\ntoken_env = ""\n[mesh]\ntoken_env = ""\n',
}


@pytest.fixture(params=MANIFESTS.values(), ids=MANIFESTS.keys())
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A compose directory as `up` writes it, with empty secrets."""
    plan = plan_of(request.param)
    for name, content in compose_files(plan, IMAGE, manifest=manifest_bytes(request.param)).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "secrets").mkdir()
    for name in plan.secrets:
        (tmp_path / "secrets" / name).touch()
    return tmp_path


def _run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def test_the_schema_of_the_compose_specification_accepts_it(folder: Path) -> None:
    """And it rejects the same file with an unknown key, so it does check."""
    schema, document = (
        json.loads(SCHEMA.read_text()),
        yaml.safe_load((folder / "docker-compose.yml").read_text()),
    )
    judge = jsonschema.Draft7Validator(schema)
    judge.validate(document)
    document["services"]["agentbox"]["cap_dorp"] = ["ALL"]
    with pytest.raises(jsonschema.ValidationError):
        judge.validate(document)


def test_compose_lint_finds_nothing(folder: Path) -> None:
    """At its lowest threshold; without `cap_drop` it complains, so it does check."""
    lint = (
        str(Path(sys.executable).parent / "compose-lint"),
        "--fail-on",
        "low",
        "docker-compose.yml",
    )
    found = _run(folder, *lint)
    assert (found.returncode, "no issues found" in found.stdout) == (0, True), found.stdout
    text = (folder / "docker-compose.yml").read_text()
    (folder / "docker-compose.yml").write_text(text.replace("    cap_drop:\n      - ALL\n", ""))
    assert _run(folder, *lint).returncode == 1
