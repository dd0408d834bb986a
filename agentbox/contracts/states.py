"""Request and response bodies of states."""

from collections.abc import Mapping
from typing import Annotated, Protocol

from agentbox.contracts.arguments import Cursor, Id, PageSize
from agentbox.core.records.bounds import bounded_text
from agentbox.core.records.wire import Record, record

ADOPTED_NAME = r"^(agents\.[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|[a-z0-9][a-z0-9_-]{0,63})$"
LEGACY_NAME = r"^legacy\.[^/]{1,128}$"


@record
class StateHolds(Record):
    """Number of memory entries and pod objects."""

    memory: int
    pods: int


@record
class State(Record):
    """The memory and pods that runs use. `name` None: of a single run, named `label`. `owner` is
    the principal that created it, `first` its first agent, `agents` the running ones. Times in Unix
    seconds; `used`: last start or end of a run. `removed`: its data is being deleted. `source`:
    what was adopted into it. `holds` is set for a single state.
    """

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
    """`legacy`: agents with data from before runs had their own states; returned with
    `legacy=true`.
    """

    items: tuple[State, ...]
    next_cursor: str | None = None
    legacy: tuple[str, ...] = ()


@record
class AdoptBody(Record):
    """`source` is `legacy.<agent>`; `name` a new state, or `agents.<name>`, which is shared by the
    runs of that agent.
    """

    source: Annotated[str, bounded_text(pattern=LEGACY_NAME)]
    name: Annotated[str, bounded_text(pattern=ADOPTED_NAME)]


class StateEndpoints(Protocol):
    """What the API serves for states. An id may also be a name."""

    async def list_states(
        self, *, limit: PageSize = 100, cursor: Cursor | None = None, legacy: bool = False
    ) -> States: ...

    async def adopt(self, source: AdoptBody) -> State: ...

    async def show(self, id: Id) -> State: ...

    async def remove(self, id: Id) -> StateHolds: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (StateHolds, State, States, AdoptBody)
}
