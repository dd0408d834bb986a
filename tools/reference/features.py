"""docs/features.md, from config/features/ and the last run of the trials."""

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.features.loader import UNGATED, features_dir, load_features
from agentbox.manifest.features.model import Feature

from reference import COMMAND
from reference.feature_rights import rights
from reference.feature_runs import run_section

TARGET: Final = CHECKOUT / "docs/features.md"
RESULTS: Final = CHECKOUT / "bench/results/features.json"
_INTRO: Final = f"""# Features

<!-- Generated from config/features/ and bench/results/features.json by `{COMMAND}`.
Do not edit. -->

A feature is a file in `config/features/`: a key of the manifest enables it, and the file defines
the packages for the lock, the links for the image, the programs, ports, volumes and environment for
the plan, and the probes for the box. Its packages form a separate layer, `f-<feature>`; packages of
several features are in `f-shared`. Nothing is installed or downloaded when a box starts, and
scripts of packages are never run.

`schema/feature.schema.json` defines the format of a file. A program that asks its users for a
password finds it in `/run/agentbox/secrets/`: the operator's secret if a key of the manifest names
one, else one that the first boot creates and keeps;
`agentbox shell -- cat /var/lib/agentbox/secrets/<name>` shows that one.

A program is confined by the kernel (Landlock and a seccomp filter,
`docs/adr/0033-programs-of-features-are-confined.md`): besides the toolchain and a temporary
directory it may use what "May use" lists, and nothing else of the box; `agentbox render plan` shows
its complete ruleset, including exceptions.
"""


def page(results: Path = RESULTS) -> str:
    """Return the page, with the rows of that file."""
    features = {name: row for name, row in load_features().items() if name not in UNGATED}
    rows = json.loads(results.read_text())["rows"] if results.exists() else {}
    parts = [_INTRO, *run_section(features, rows)]
    for name, feature in features.items():
        parts += _section(feature, _description(name))
    return "\n".join(parts)


def _description(name: str) -> str:
    """Return the comment at the beginning of the file."""
    lines = (features_dir() / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    return " ".join(
        line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines)
    )


def _section(feature: Feature, description: str) -> Iterator[str]:
    assert feature.gate is not None
    values = " or ".join(f"`{json.dumps(value)}`" for value in feature.gate.values)
    condition = f", while `{feature.gate.when}`" if feature.gate.when else ""
    yield f"## {feature.name}\n\n{description}\n"
    sources, systems = ", ".join(feature.sources), ", ".join(feature.systems)
    yield f"- Enabled by `{feature.gate.key}` = {values}{condition}; from {sources}, on {systems}"
    for title, text in _facts(feature):
        if text:
            yield f"- {title}: {text}"
    yield ""


def _facts(feature: Feature) -> Iterator[tuple[str, str]]:
    yield "Debian packages", _code_list(feature.debian)
    yield "nixpkgs", _code_list(feature.nixpkgs)
    yield "Python packages", _code_list(feature.pypi)
    yield "npm packages", _code_list(feature.npm)
    yield "Install scripts not run", feature.npm_scripts_ignored
    yield "Optional packages left out", feature.npm_optional_ignored
    yield "Commands", _code_list(feature.commands)
    yield "Skills", _code_list(feature.skills)
    yield "Memory beside the agents", str(feature.min_memory or "")
    yield "Environment", _code_list(f"{name}={value}" for name, value in feature.env.items())
    yield "Programs", ", ".join(_program(table) for table in feature.programs)
    yield "May use", rights(feature)
    yield (
        "Ports",
        ", ".join(
            f"{port.name} {f'`{port.key}`' if port.key else port.port}" for port in feature.ports
        ),
    )
    yield "Volumes", _code_list(table["target"] for table in feature.volumes)
    yield (
        "Exception",
        f"`{feature.exception.key}`, {feature.exception.need}" if feature.exception else "",
    )
    yield "Proof", "; ".join(probe["reason"] for probe in feature.probes)


def _program(table: Mapping[str, Any]) -> str:
    password = table.get("password")
    return f"`{table['name']}`" + (f" (password `{password['file']}`)" if password else "")


def _code_list(values: Any) -> str:
    return ", ".join(f"`{value}`" for value in values)


def outputs() -> Mapping[Path, str]:
    """Return the generated file and its text."""
    return {TARGET: page()}
