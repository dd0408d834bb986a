"""A scorecard as SARIF 2.1.0 (OASIS, errata 01): a rule a check, a result a row, good ones as `kind: pass`."""

from typing import Any, Final

from agentbox import __version__
from agentbox.host.doctor.row import Row, Scorecard, State

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# State -> kind and level. SARIF 3.27.9 and 3.27.10: a level other than `none` only with kind `fail`.
_KINDS: Final[dict[State, tuple[str, str]]] = {
    "good": ("pass", "none"), "note": ("informational", "none"), "warning": ("fail", "warning"),
    "unknown": ("open", "none"), "bad": ("fail", "error"),
}  # fmt: skip


def sarif(card: Scorecard) -> dict[str, Any]:
    """One run."""
    places = {name: place for place, name in enumerate(card.titles)}
    rules = [{"id": name, "shortDescription": {"text": title}} for name, title in card.titles.items()]
    run = {
        "tool": {"driver": {"name": f"agentbox {card.name}", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True}],
        "results": [_result(row, places[row.check], card) for row in card.rows],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(row: Row, place: int, card: Scorecard) -> dict[str, Any]:
    kind, level = ("fail", "error") if row in card.failed else _KINDS[row.state]
    return {
        "ruleId": row.check,
        "ruleIndex": place,
        "kind": kind,
        "level": level,
        "message": {"text": f"{row.said}\n{row.advice}".rstrip()},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": row.name, "kind": "member"}]}],
        "partialFingerprints": {"row/v1": row.name},
        "properties": {"state": row.state, "controls": list(row.controls), **row.facts},
    }
