"""What a program of the box writes."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import logging, structlog
from agentbox.core.logging import configure
configure("probe", "info")
log = structlog.get_logger()
log.debug("unseen")
log.info("hello", answer=42)
logging.getLogger("library").warning("from a library")
def work(token):
    raise ValueError("went wrong")
try:
    work("canary-secret")
except ValueError:
    log.exception("failed")
"""


def lines(level: str = "info") -> list[dict[str, object]]:
    """The JSON lines of one small program."""
    program = PROGRAM.replace('"info"', f'"{level}"')
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_line_is_json_with_time_level_and_program() -> None:
    """Also a line of a library; what is below the level is not written."""
    seen = lines()
    assert [line["event"] for line in seen] == ["hello", "from a library", "failed"]
    assert all(line["program"] == "probe" and str(line["time"]).endswith("Z") for line in seen)
    assert [line["level"] for line in seen] == ["info", "warning", "error"]


def test_a_request_that_a_program_makes_is_no_line() -> None:
    """Agents choose how many there are: at info nothing is logged for each."""
    asks = """
import logging
from agentbox.core.logging import configure
configure("probe", "info")
for name in ("httpx", "httpcore.connection"):
    logging.getLogger(name).info("HTTP Request")
    logging.getLogger(name).warning("told")
"""
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["told", "told"]


def test_a_traceback_shows_no_variable() -> None:
    """The traceback names the exception and its frames, never the value of a variable in them."""
    failed = lines()[-1]
    assert "went wrong" in json.dumps(failed)
    assert "work" in json.dumps(failed)
    assert "canary-secret" not in json.dumps(failed)


@pytest.mark.parametrize(
    ("level", "first"),
    [("trace", "unseen"), ("debug", "unseen"), ("info", "hello"), ("error", "failed")],
)
def test_every_level_of_the_manifest(level: str, first: str) -> None:
    """Each value of observability.log_level is a level that a program starts with."""
    assert lines(level)[0]["event"] == first
