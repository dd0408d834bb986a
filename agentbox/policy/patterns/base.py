"""The interface of all patterns."""

from typing import Any, Protocol


class PatternError(ValueError):
    """The text is not valid in its scope; `form` describes valid texts."""

    def __init__(self, text: str, reason: str, form: str) -> None:
        super().__init__(f'"{text}" {reason}')
        self.text = text
        self.form = form


class ScopePattern(Protocol):
    """A set of values. `matches` takes a value in its normal form and is False for any other text.
    `covers`: contains every value of the other. Never True by mistake; False may mean that it
    cannot be proved. `overlaps`: may have a value in common. Never False by mistake. Patterns of
    different scopes have no value in common.
    """

    def matches(self, value: str) -> bool:
        """Whether the value is in the set."""
        ...

    def covers(self, other: Any) -> bool:
        """Whether the set contains all of the other."""
        ...

    def overlaps(self, other: Any) -> bool:
        """Whether the sets may have a value in common."""
        ...

    @property
    def variable(self) -> str:
        """`$WORKSPACE` or another variable that the pattern starts with, else ""."""
        ...
