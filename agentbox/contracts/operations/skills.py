"""Operations of skills."""

from agentbox.contracts.routes.operation import read
from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.skills import SkillEndpoints

SKILLS = Resource(
    "skills",
    SkillEndpoints,
    scope="agents",
    operations=(
        read(
            "list_skills",
            "GET /v1/skills",
            "The skills of the image, with their files and the agents that are told of them.",
        ),
    ),
)
RESOURCES = (SKILLS,)
