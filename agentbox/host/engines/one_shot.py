"""One program of the box on its volumes while the box is down, without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentbox.host.engines.state import BoxState


@dataclass(frozen=True, kw_only=True)
class OneShot:
    """`image` is the image id or reference that a container runs, `python` the environment (a
    prefix) under the process engine, "" the one of this command. `volumes` as in a generation: a
    volume that does not exist is made, empty and owned by the box's user. `module` is run by
    `python -I -m` as the box's user.
    """

    name: str
    state: BoxState
    module: str
    arguments: Sequence[str] = ()
    image: str = ""
    python: str = ""
    volumes: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 600.0
