"""Every case: the findings listed beside it, and no other."""

import pytest
from case import Case, cases

from agentbox.manifest.rules.discovery import discover


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_case(case: Case) -> None:
    """The list is complete, and a case triggers its own code exactly when its name says so."""
    assert case.found() == list(case.expect)
    assert any(line.startswith(f"{case.code} ") for line in case.expect) == case.trips


def test_every_rule_has_cases_and_every_case_a_rule() -> None:
    """At least one that trips and one that is clean."""
    by_code: dict[str, set[bool]] = {}
    for case in cases():
        by_code.setdefault(case.code, set()).add(case.trips)
    assert set(by_code) == set(discover())
    assert all(kinds == {True, False} for kinds in by_code.values())


@pytest.mark.parametrize(
    "case", [case for case in cases() if case.environment], ids=lambda case: case.id
)
def test_no_value_of_the_environment_is_shown(case: Case) -> None:
    """Messages name variables; their values are not shown."""
    shown = " ".join(f"{found.message} {found.remedy}" for found in case.report().findings)
    for value in case.environment.values():
        assert not value or value not in shown
