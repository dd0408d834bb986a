"""A family of requirements behind `/ready`. Adding one is one file in `requirements/` and one row in `standard.py`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

Wake = Callable[[], None]


class Requirement(ABC):
    """Defaults for a family. `check` must leave the event loop free: what blocks runs through `in_thread`."""

    family: str
    title: str = ""  # its name in `requirements` of the body, empty for those that are not listed
    period: float = 5.0  # seconds between two checks when no event comes
    deadline: float = 2.0  # seconds one check may take

    @abstractmethod
    async def check(self) -> tuple[str, ...]:
        """The strings for `missing`, sorted by name; none when everything is as it must be."""

    @abstractmethod
    def missing_on_timeout(self) -> tuple[str, ...]:
        """The strings for `missing` when the check did not answer within its deadline."""

    def attach(self, wake: Wake) -> None:  # noqa: B027  (most families need no events)
        """Starts to watch for events; `wake` asks for a check now. Called once, inside the running loop."""

    def detach(self) -> None:  # noqa: B027
        """Ends what `attach` began."""

    def degraded(self) -> tuple[str, ...]:
        """Names that work without something they may miss."""
        return ()

    def evidence(self) -> Mapping[str, Any]:
        """What the last check proved, for the body of a ready answer."""
        return {}
