"""Skills over HTTP: the catalogue of the image, and who is told of what."""

import asyncio
from collections.abc import Mapping

from agentbox.api.plan_source import PlanSource
from agentbox.contracts.skills import SkillFileInfo, SkillInfo, Skills
from agentbox.core.paths import Paths
from agentbox.plan.skill_catalogue import SkillCatalogue, SkillRow
from agentbox.plan.tables import AgentPlan


class SkillHandlers:
    """Reads the catalogue at the first request."""

    def __init__(self, paths: Paths, plans: PlanSource) -> None:
        self._catalogue, self._plans = SkillCatalogue(paths), plans

    async def list_skills(self) -> Skills:
        rows = await asyncio.to_thread(lambda: self._catalogue.rows)
        told = self._told(self._plans.current.agents)
        return Skills(items=tuple(_info(row, told.get(row.name, ())) for row in rows.values()))

    def _told(self, agents: Mapping[str, AgentPlan]) -> dict[str, tuple[str, ...]]:
        """The agents by skill."""
        told: dict[str, tuple[str, ...]] = {}
        for agent, table in sorted(agents.items()):
            for row in self._catalogue.selected(table.skills):
                told[row.name] = (*told.get(row.name, ()), agent)
        return told


def _info(row: SkillRow, agents: tuple[str, ...]) -> SkillInfo:
    return SkillInfo(
        name=row.name,
        description=row.text("description"),
        license=row.text("license"),
        compatibility=row.text("compatibility"),
        allowed_tools=row.text("allowed-tools"),
        digest=row.digest,
        files=tuple(SkillFileInfo(**vars(file)) for file in row.files.values()),
        agents=agents,
    )
