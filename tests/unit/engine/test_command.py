"""External programs: output is returned, failures are reported."""

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.command import failure_text, run, succeeds


def test_output_is_returned() -> None:
    """Complete stdout."""
    assert run(["printf", "a\\nb\\n"], doing="print") == "a\nb\n"


def test_a_failure_tells_what_the_program_said() -> None:
    """The message names the action and the line with the cause, then the lines before it."""
    with pytest.raises(AgentboxError, match=r"cannot do it: second\n  \| first") as caught:
        run(["sh", "-c", "echo first >&2; echo second >&2; exit 3"], doing="do it", hint="mend it")
    assert caught.value.exit_code is ExitCode.ENGINE
    assert caught.value.hint == "mend it"


def test_a_program_that_was_killed_is_told_from_one_that_failed() -> None:
    """By signal if the program was killed; by exit code if it printed nothing."""
    with pytest.raises(AgentboxError, match=r"^cannot do it: it was killed \(SIGKILL\)$"):
        run(["sh", "-c", "kill -KILL $$"], doing="do it")
    with pytest.raises(AgentboxError, match=r"^cannot do it: exit code 7$"):
        run(["sh", "-c", "exit 7"], doing="do it")


def test_compose_tells_its_reason_before_its_last_line() -> None:
    """Version 1.29 ends with an uninformative sentence."""
    said = "ERROR: for x  Cannot start\nEncountered errors while bringing up the project."
    assert failure_text(said).splitlines()[0] == "ERROR: for x  Cannot start"


def test_a_missing_program_is_a_missing_prerequisite() -> None:
    """Exit 3, with the program's name."""
    with pytest.raises(AgentboxError, match="no-such-program is not installed") as caught:
        run(["no-such-program"], doing="do it")
    assert caught.value.exit_code is ExitCode.PREREQUISITE


def test_a_program_that_hangs_is_ended() -> None:
    """The call fails at the deadline."""
    with pytest.raises(AgentboxError, match="did not end"):
        run(["sleep", "60"], doing="wait", timeout=0.2)
    assert not succeeds(["sleep", "60"], timeout=0.2)


def test_succeeds_tells_exit_codes_apart() -> None:
    """0 is success; any other code or a missing program is not."""
    assert succeeds(["true"])
    assert not succeeds(["false"])
    assert not succeeds(["no-such-program"])
