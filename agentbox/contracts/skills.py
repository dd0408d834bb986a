"""The skills of a box, as its API reports them."""

from collections.abc import Mapping
from typing import Protocol

from agentbox.core.records.wire import Record, record


@record
class SkillFileInfo(Record):
    """`size` in bytes, `sha256` bare hex."""

    path: str
    executable: bool
    size: int
    sha256: str


@record
class SkillInfo(Record):
    """A skill of the image. `digest` is that of plan and lock. `allowed_tools` is what its author
    wrote: it grants nothing. `agents`: names in [agents] that are told of it.
    """

    name: str
    description: str
    license: str
    compatibility: str
    allowed_tools: str
    digest: str
    files: tuple[SkillFileInfo, ...]
    agents: tuple[str, ...]


@record
class Skills(Record):
    """All skills of the image, by name."""

    items: tuple[SkillInfo, ...]


class SkillEndpoints(Protocol):
    """What the API serves about skills."""

    async def list_skills(self) -> Skills: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (SkillFileInfo, SkillInfo, Skills)
}
