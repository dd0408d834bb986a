"""One program of the box on its volumes while the box is down, without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentbox.host.engines.state import BoxState

HINT: Final = "See `agentbox generations`, and ./agentbox.sh doctor for room and permissions."
BESIDE: Final = "{beside}"


@dataclass(frozen=True, kw_only=True)
class OneShot:
    """`image` is the image id or reference that a container runs, `python` the environment (a
    prefix) under the process engine, "" the one of this command. `volumes` as in a generation: a
    volume that does not exist is made, empty and owned by the box's user. `module` is run by
    `python -I -m` as the box's user. Where `beside` is not None, the argument `BESIDE` becomes the
    state folder of those other volumes, for reading.
    """

    name: str
    state: BoxState
    module: str
    arguments: Sequence[str] = ()
    image: str = ""
    python: str = ""
    volumes: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, str] | None = None
    seconds: float = 600.0

    def argv(self, beside: str) -> list[str]:
        """The arguments, with the path of the other state folder."""
        return [beside if word == BESIDE else word for word in self.arguments]
