"""Error output of a failed program."""

from agentbox.host.packages.host_command import CommandResult, run

ABSENT = "E: Unable to locate package x\nE: Couldn't find any package by glob 'x'\nE: Couldn't find any package by regex 'x'\n"


def test_the_reason_is_what_the_program_said_of_errors() -> None:
    """Without apt's echoes; the last line if no line is an error; the exit status if there is no
    output.
    """
    assert CommandResult(100, "", ABSENT).reason == "E: Unable to locate package x"
    assert CommandResult(1, "", "reading\nno such file\n").reason == "no such file"
    assert CommandResult(3, "", "").reason == "exit code 3"
    assert CommandResult(-9, "", "").reason == "it was killed (SIGKILL)"


def test_a_program_that_hangs_is_killed() -> None:
    """At the deadline, and the reason contains it."""
    hung = run(["sleep", "60"], timeout=0.2)
    assert hung.code != 0
    assert hung.reason == "timed out after 0.2 s"
