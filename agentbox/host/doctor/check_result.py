"""A line of a scorecard: what was looked at, what was found, and what to do about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from agentbox.core.errors import ExitCode

State = Literal["good", "note", "warning", "unknown", "bad"]
STATES: Final[tuple[State, ...]] = ("good", "note", "warning", "unknown", "bad")
"""`note`: worth knowing, nothing to do. `warning`: a box works, something of it does not. `unknown`: it could not be found
out. `bad`: a box cannot start here, or is not what its plan promises."""


@dataclass(frozen=True)
class Fix:
    """What `--fix` can do. `question` is what the operator is asked; `act` does it and returns what it did.

    `act` raises AgentboxError when it cannot.
    """

    question: str
    apply: Callable[[], str]


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """`check` names what was looked at, `subject` tells apart several rows of one check. `controls`: ids of CIS Docker 1.6
    and of the Pod Security Standards. `facts` are for programs."""

    check: str
    state: State
    message: str
    subject: str = ""
    advice: str = ""
    controls: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    fix: Fix | None = None

    @property
    def name(self) -> str:
        """Unique within a scorecard."""
        return f"{self.check}.{self.subject}" if self.subject else self.check

    def to_wire(self) -> dict[str, Any]:
        """For programs; a repair as its question."""
        return {
            "check": self.check,
            "subject": self.subject,
            "state": self.state,
            "said": self.message,
            "advice": self.advice,
            "controls": list(self.controls),
            "facts": self.facts,
            "repair": self.fix.question if self.fix else "",
        }


@dataclass(frozen=True)
class DoctorReport:
    """All rows of one run. `titles`: what each check is about. `strict`: what could not be found out is a failure too."""

    name: str
    titles: dict[str, str]
    results: tuple[CheckResult, ...]
    strict: bool = False

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The rows for which the exit code is 1."""
        return tuple(
            result
            for result in self.results
            if result.state == "bad" or (self.strict and result.state == "unknown")
        )

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.BAD if self.failed else ExitCode.DONE

    @property
    def counts(self) -> dict[State, int]:
        """How many rows of each state."""
        return {state: sum(result.state == state for result in self.results) for state in STATES}
