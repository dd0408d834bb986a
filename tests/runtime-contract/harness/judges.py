"""External validators, and the reader of grants: each reads a directory of rendered files and
reports what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml
from npm_tools import npm_tool
from support.rendered_grants import READERS, plan_grants, unwaived

from agentbox.core.paths import CHECKOUT
from agentbox.plan.model import Plan
from agentbox.plan.render.kubernetes.objects import KUBERNETES_FILE
from agentbox.plan.render.kubernetes.security import violations
from agentbox.plan.render.prometheus import CONFIG_FILE, RULES_FILE

COMPOSE = "docker-compose.yml"
_SCHEMA = CHECKOUT / "tests/data/compose-spec.json"
_KUBERNETES = ("1.29", kubernetes_validate.latest_version())

Judge = Callable[[Path, Plan], list[str]]


def _ran(folder: Path, *argv: str) -> list[str]:
    """Nothing if the program ends with 0, else its output."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    return (
        []
        if done.returncode == 0
        else [f"{Path(argv[0]).name} {done.returncode}: {done.stdout}{done.stderr}"]
    )


def _compose_lint(folder: Path, _plan: Plan) -> list[str]:
    return _ran(
        folder, str(Path(sys.executable).with_name("compose-lint")), "--fail-on", "low", COMPOSE
    )


def _dclint(folder: Path, _plan: Plan) -> list[str]:
    return _ran(folder, *npm_tool("dclint"), "--max-warnings", "0", COMPOSE)


def _compose_schema(folder: Path, _plan: Plan) -> list[str]:
    judge = jsonschema.Draft7Validator(json.loads(_SCHEMA.read_text()))
    return [
        error.message for error in judge.iter_errors(yaml.safe_load((folder / COMPOSE).read_text()))
    ]


def _objects(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["kind"]: row for row in yaml.safe_load_all((folder / KUBERNETES_FILE).read_text())}


def _kubernetes_validate(folder: Path, _plan: Plan) -> list[str]:
    found = []
    for row in _objects(folder).values():
        for version in _KUBERNETES:
            try:
                kubernetes_validate.validate(row, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                found.append(f"{row['kind']} of {version}: {error.message}")
    return found


def _pod_security(folder: Path, _plan: Plan) -> list[str]:
    return [str(row) for row in violations(_objects(folder)["StatefulSet"]["spec"]["template"])]


def _promtool(folder: Path, _plan: Plan) -> list[str]:
    return _ran(folder, "promtool", "check", "config", CONFIG_FILE) + _ran(
        folder, "promtool", "check", "rules", RULES_FILE
    )


def _grants(folder: Path, plan: Plan) -> list[str]:
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return [
        f"{target}: {row}"
        for target in READERS
        for row in unwaived(target, READERS[target](files), plan_grants(plan))
    ]


JUDGES: Mapping[str, Judge] = {
    "compose-lint": _compose_lint,
    "compose-spec": _compose_schema,
    "dclint": _dclint,
    "grants": _grants,
    "kubernetes-validate": _kubernetes_validate,
    "pod-security": _pod_security,
    "promtool": _promtool,
}
