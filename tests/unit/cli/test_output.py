"""Separation of stdout and stderr."""

import json

import pytest

from agentbox.host.cli.output import Output


def test_people_get_lines_and_programs_get_documents(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json only lines; with it exactly one document on stdout."""
    for out in (Output(), Output(json=True)):
        out.line("for people")
        out.document({"for": "programs"})
    said = capsys.readouterr().out
    assert said.startswith("for people\n{")
    assert json.loads(said.removeprefix("for people\n")) == {"for": "programs"}


def test_stages_tell_what_they_did(capsys: pytest.CaptureFixture[str]) -> None:
    """A stage's line has its name, its result and its time, on stderr; --quiet silences it, --json structures it."""
    for out in (Output(), Output(quiet=True), Output(json=True)):
        with out.stage("image") as stage:
            stage.result = "unchanged"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].split()[:2] == ["image", "unchanged"]
    assert json.loads(lines[1])["result"] == "unchanged"


def test_a_failing_stage_says_nothing_of_success(capsys: pytest.CaptureFixture[str]) -> None:
    """The error passes through, and no line claims that the stage ended."""
    with pytest.raises(ValueError, match="x"), Output().stage("image"):
        raise ValueError("x")
    assert "done" not in capsys.readouterr().err
