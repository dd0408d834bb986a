"""What is asked for of a program in a sandbox."""

from collections.abc import Mapping

from agentbox.adapters.orchestrator.spec_checks import check_form
from agentbox.agents.errors import invalid
from agentbox.contracts.orchestrator import MAX_OUTPUT, MAX_RUN_SECONDS, AgentSpec

MAX_SHOWN, MAX_WORDS = 1024, 64  # characters of a word, and words, of a command in its record


def check_exec(
    argv: tuple[str, ...],
    cwd: str,
    env: Mapping[str, str],
    timeout_s: float,
    max_output: int,
) -> None:
    """Raises ValidationError."""
    if not argv or not argv[0]:
        raise invalid("/argv", "must name a program")
    check_form(AgentSpec(name="exec", argv=argv, cwd=cwd, env=env))
    if not 0 < timeout_s <= MAX_RUN_SECONDS:
        raise invalid("/timeout_s", f"must be above 0 and at most {MAX_RUN_SECONDS:g}")
    if not 0 <= max_output <= MAX_OUTPUT:
        raise invalid("/max_output", f"must be from 0 to {MAX_OUTPUT}")


def shown_command(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command in the record of a program: its first words, each cut."""
    return tuple(word[:MAX_SHOWN] for word in argv[:MAX_WORDS])
