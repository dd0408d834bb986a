"""Bodies and answers of states."""

from collections.abc import Mapping
from typing import Annotated

from agentbox.core.records.bounds import bounded_text
from agentbox.core.records.wire import Record, record

ADOPTED_NAME = r"^(agents\.[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|[a-z0-9][a-z0-9_-]{0,63})$"
LEGACY_NAME = r"^legacy\.[^/]{1,128}$"


@record
class StateHolds(Record):
    """Entries of memory, and objects of pods."""

    memory: int
    pods: int


@record
class State(Record):
    """Whose memory and pods a run uses. `name` None: those of one run, which `label` was called. `owner` is the principal that
    made it, `first` its first agent, `agents` those that live. Times in Unix seconds; `used`: when a run of it began or ended last.
    `removed`: its data is going. `source`: what was adopted into it. `holds` is of a single state."""

    state_id: str
    name: str | None
    owner: str
    label: str
    first: str
    created: float
    used: float
    agents: tuple[str, ...]
    removed: bool = False
    source: str = ""
    holds: StateHolds | None = None


@record
class States(Record):
    """`legacy`: names of what agents left before states were a run's own; given to who asks with `legacy=true`."""

    items: tuple[State, ...]
    next_cursor: str | None = None
    legacy: tuple[str, ...] = ()


@record
class AdoptBody(Record):
    """`source` is `legacy.<agent>`; `name` a new state, or `agents.<name>`, which the runs of that agent share."""

    source: Annotated[str, bounded_text(pattern=LEGACY_NAME)]
    name: Annotated[str, bounded_text(pattern=ADOPTED_NAME)]


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (StateHolds, State, States, AdoptBody)
}
