"""SARIF 2.1.0 (OASIS, errata 01): a rule per check, a result per row, good ones as `kind: pass`."""

from typing import Any, Final

from agentbox import __version__
from agentbox.host.doctor.check_result import CheckResult, DoctorReport, State

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
# State -> kind and level. SARIF 3.27.9 and 3.27.10: a level other than `none` only with kind
# `fail`.
_KINDS: Final[dict[State, tuple[str, str]]] = {
    "good": ("pass", "none"),
    "note": ("informational", "none"),
    "warning": ("fail", "warning"),
    "unknown": ("open", "none"),
    "bad": ("fail", "error"),
}


def render_sarif(report: DoctorReport) -> dict[str, Any]:
    """Renders one run."""
    rule_indexes = {name: index for index, name in enumerate(report.titles)}
    rules = [
        {"id": name, "shortDescription": {"text": title}} for name, title in report.titles.items()
    ]
    run = {
        "tool": {
            "driver": {"name": f"agentbox {report.name}", "version": __version__, "rules": rules}
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True}],
        "results": [
            _result(result, rule_indexes[result.check], report) for result in report.results
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(result: CheckResult, rule_index: int, report: DoctorReport) -> dict[str, Any]:
    kind, level = ("fail", "error") if result in report.failed else _KINDS[result.state]
    return {
        "ruleId": result.check,
        "ruleIndex": rule_index,
        "kind": kind,
        "level": level,
        "message": {"text": f"{result.message}\n{result.advice}".rstrip()},
        "locations": [
            {"logicalLocations": [{"fullyQualifiedName": result.name, "kind": "member"}]}
        ],
        "partialFingerprints": {"row/v1": result.name},
        "properties": {"state": result.state, "controls": list(result.controls), **result.facts},
    }
