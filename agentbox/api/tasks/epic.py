"""The permanent epic whose children are the tasks of a box."""

from typing import TYPE_CHECKING

from agentbox.contracts.beads import Bead, BeadFilter, BeadSpec
from agentbox.core.paths import Paths
from agentbox.core.records.page import Page
from agentbox.core.slot_errors import NotFound
from agentbox.mesh.client.instance import load_or_create
from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Slots

_EPIC_KEY = "agentbox:tasks"


class TaskEpic:
    """Beads below the epic, which is made on first use. Shared beads have an epic for the tasks of
    each box: raises AgentboxError for a box that cannot store its identity.
    """

    def __init__(self, plan: Plan, paths: Paths, slots: "Slots") -> None:
        self._box = f"urn:agentbox:box:{plan.name}"
        shared = plan.slots["beads"].use.startswith("external-")
        self._key = f"{_EPIC_KEY}:{load_or_create(paths.slot('mesh')).id}" if shared else _EPIC_KEY
        self._slots = slots
        self._id = ""

    async def id(self) -> str:
        if not self._id:
            spec = BeadSpec(title="tasks", creator=self._box, dedup_key=self._key)
            self._id = (await self._slots.beads.create_epic(spec))[0].id
        return self._id

    async def bead(self, task_id: str) -> Bead:
        """Raises NotFound for a bead that is not a task of this box."""
        bead = await self._slots.beads.show(task_id)
        if bead.parent_id != await self.id():
            raise NotFound("cannot find this task", resource="task", id=task_id)
        return bead

    async def page(self, limit: int, cursor: str | None) -> Page[Bead]:
        """The beads in order of id."""
        filter = BeadFilter(parent_id=await self.id())
        return await self._slots.beads.list(filter, limit=limit, cursor=cursor)

    async def create_child(self, spec: BeadSpec) -> tuple[Bead, bool]:
        """The bead, and whether it is new: an equal `dedup_key` gives the earlier one."""
        return await self._slots.beads.create_child(await self.id(), spec)
