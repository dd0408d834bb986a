"""What every pattern promises, whatever it names."""

from typing import Any, Protocol


class PatternError(ValueError):
    """A text is not in the form of its scope; `form` says what that form is."""

    def __init__(self, text: str, reason: str, form: str) -> None:
        super().__init__(f'"{text}" {reason}')
        self.text = text
        self.form = form


class Pattern(Protocol):
    """A set of values. `matches` takes a value in its normal form and is False for any other text.

    `covers`: every value of the other is one of this. Never True by mistake; False may mean that it cannot be shown.
    `overlaps`: some value may be in both. Never False by mistake. Patterns of two scopes have no value in common.
    """

    def matches(self, value: str) -> bool:
        """Whether that value is in the set."""
        ...

    def covers(self, other: Any) -> bool:
        """Whether the set holds all of the other."""
        ...

    def overlaps(self, other: Any) -> bool:
        """Whether the sets may have a value in common."""
        ...

    @property
    def variable(self) -> str:
        """`$WORKSPACE` and the like where the pattern starts with one, else ""."""
        ...
