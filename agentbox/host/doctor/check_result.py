"""Results of checks: subject, state, message and advice."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from agentbox.core.errors import ExitCode
from agentbox.core.frozen import frozen

State = Literal["good", "note", "warning", "unknown", "bad"]
STATES: Final[tuple[State, ...]] = ("good", "note", "warning", "unknown", "bad")
"""`note`: informational. `warning`: a box works with restrictions. `unknown`: not determined.
`bad`: a box cannot start here, or does not match its plan."""


@dataclass(frozen=True)
class Fix:
    """A fix for `--fix`. `question` is shown for confirmation; `apply` returns a summary.

    `apply` raises AgentboxError on failure.
    """

    question: str
    apply: Callable[[], str]


@frozen
class CheckResult:
    """`subject` distinguishes several results of one check. `controls`: ids of CIS Docker 1.6 and
    of the Pod Security Standards. `facts`: machine-readable details."""

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
        """Unique within a report."""
        return f"{self.check}.{self.subject}" if self.subject else self.check

    def to_wire(self) -> dict[str, Any]:
        """JSON data; a fix as its question."""
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
    """All results of one run. `titles`: title of each check. `strict`: `unknown` counts as
    failure."""

    name: str
    titles: dict[str, str]
    results: tuple[CheckResult, ...]
    strict: bool = False

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The results that cause exit code 1."""
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
        """State -> number of results."""
        return {state: sum(result.state == state for result in self.results) for state in STATES}
