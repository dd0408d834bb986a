"""The skills of a plan: their files, checked against its digests, and their catalogue."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from agentbox.manifest.skills.corpus import load_skills, shipped_folders
from agentbox.manifest.skills.skill import Skill, SkillError
from agentbox.plan.model import Plan


def plan_skills(plan: Plan, folders: Mapping[str, Path] | None = None) -> tuple[Skill, ...]:
    """The skills of the image, from their folders by name (default: those that agentbox brings).
    Raises SkillError for a skill that is missing, bad, or not the one that was locked."""
    skills = load_skills(plan.skills, shipped_folders() if folders is None else folders)
    for skill in skills:
        if skill.digest != plan.digests.skills[skill.name]:
            raise SkillError(
                f"cannot use skill {skill.name}: its files differ from agentbox.lock",
                "Run `agentbox lock`.",
            )
    return skills


def skill_catalogue(skills: Collection[Skill]) -> bytes:
    """skills.json: what the programs of the box read instead of front matter."""
    rows = [skill.catalogue_row() for skill in skills]
    return (json.dumps(rows, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
