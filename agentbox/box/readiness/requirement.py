"""A family of requirements behind `/ready`. To add one, add a file in `requirements/` and a row in
`box_requirements.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

Wake = Callable[[], None]


class Requirement(ABC):
    """Base class of a family. `check` must not block the event loop: blocking calls run through
    `InThread`.
    """

    family: str
    title: str = ""  # its name in `requirements` of the body, empty if not listed
    period: float = 5.0  # seconds between two checks without an event
    deadline: float = 2.0  # seconds one check may take

    @abstractmethod
    async def check(self) -> tuple[str, ...]:
        """The strings for `missing`, sorted by name; none when the requirement is met."""

    @abstractmethod
    def missing_on_timeout(self) -> tuple[str, ...]:
        """The strings for `missing` when the check exceeded its deadline."""

    def attach(self, wake: Wake) -> None:  # noqa: B027  (most families need no events)
        """Starts to watch for events; `wake` requests a check now. Called once, inside the running
        loop.
        """

    def detach(self) -> None:  # noqa: B027
        """Stops what `attach` started."""

    def degraded(self) -> tuple[str, ...]:
        """Names of parts that work with an optional dependency missing."""
        return ()

    def evidence(self) -> Mapping[str, Any]:
        """The result of the last check, for the body of a ready response."""
        return {}
