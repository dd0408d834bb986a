"""One program of the box on its volumes while the box is down, without a network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import IO, TYPE_CHECKING, Final

from agentbox.core.frozen import frozen

if TYPE_CHECKING:
    from agentbox.host.engines.state import BoxState

HINT: Final = "See `agentbox generations`, and ./agentbox.sh doctor for room and permissions."
BESIDE: Final = "{beside}"


@frozen
class OneShot:
    """`image` is the image id or reference that a container runs, `python` the environment (a
    prefix) under the process engine, "" the one of this command. `volumes` as in a generation: a
    volume that does not exist is made, empty and owned by the box's user. `module` is run by
    `python -I -m` as the box's user. Where `beside` is not None, the argument `BESIDE` becomes the
    state folder of those other volumes, for reading; `of`: the name and state of the other box that
    has them.
    """

    name: str
    state: BoxState
    module: str
    arguments: Sequence[str] = ()
    image: str = ""
    python: str = ""
    volumes: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, str] | None = None
    of: tuple[str, BoxState] | None = None
    seconds: float = 600.0

    @property
    def container(self) -> str:
        """The name of its container: one at a time."""
        return f"{self.name}-once"

    def argv(self, beside: str) -> list[str]:
        """The arguments, with the path of the other state folder."""
        return [beside if word == BESIDE else word for word in self.arguments]


@contextmanager
def stdin_of(given: IO[bytes] | None) -> Iterator[IO[bytes]]:
    """What the program reads: `given`, else a pipe without data that ends with this command, by
    which the program knows that nobody waits for it.
    """
    if given is not None:
        yield given
        return
    reader, writer = os.pipe()
    try:
        with os.fdopen(reader, "rb") as stream:
            yield stream
    finally:
        os.close(writer)
