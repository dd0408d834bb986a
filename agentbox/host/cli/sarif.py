"""Rule reports as SARIF 2.1.0 (OASIS), which code hosts display beside changed lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from agentbox import __version__
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.discovery import Rule, discover
from agentbox.manifest.rules.engine import NotEvaluated, ValidationReport

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_SMALLEST: Final = "(the smallest manifest, in another environment)"
_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}


def render_sarif(report: ValidationReport, name: str) -> dict[str, Any]:
    """One run over the file `name`: all rules, a result per finding, a notification per rule that
    was not evaluated."""
    rules = list(discover().values())
    rule_indexes = {rule.code: index for index, rule in enumerate(rules)}
    artifact = {"uri": _uri(name)}
    run = {
        "tool": {
            "driver": {
                "name": "agentbox",
                "version": __version__,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": artifact}],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    _notification(skipped) for skipped in report.not_evaluated
                ],
            }
        ],
        "results": [
            _result(finding, rule_indexes[finding.code], artifact) for finding in report.findings
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.reason},
        "help": {"text": f"Passes:\n{rule.good.strip() or _SMALLEST}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, rule_index: int, artifact: dict[str, str]) -> dict[str, Any]:
    region = {"startLine": finding.line, "startColumn": finding.column}
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": artifact, "region": region}
    }
    if finding.key:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.key, "kind": "member"}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}\n{finding.remedy}"},
        "locations": [location],
        "relatedLocations": [
            {
                "id": number,
                "message": {"text": related.key},
                "physicalLocation": {
                    "artifactLocation": artifact,
                    "region": {"startLine": related.line},
                },
            }
            for number, related in enumerate(finding.related)
        ],
        "partialFingerprints": {"codeAndKey/v1": f"{finding.code} {finding.key}"},
    }


def _notification(skipped: NotEvaluated) -> dict[str, Any]:
    entry = f" for {skipped.entry}" if skipped.entry else ""
    return {
        "level": "note",
        "message": {
            "text": f"{skipped.code}{entry} was not evaluated: fix {skipped.because} first"
        },
        "associatedRule": {"id": skipped.code},
    }


def _uri(name: str) -> str:
    path = Path(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
