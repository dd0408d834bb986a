"""The skills of this box: what the image's catalogue says, and their files.

A skill is an offer: the folder below `/opt/agentbox/skills` is part of the toolchain, which agents
may read. What an agent is told of is selected by `agents.<name>.skills`.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from agentbox.core.canonical import sha256_hex
from agentbox.core.errors import AgentboxError
from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths
from agentbox.policy.patterns import globs

MAIN_FILE: Final = "SKILL.md"


@frozen
class SkillFileRow:
    """`size` in bytes, `sha256` bare hex."""

    path: str
    executable: bool
    size: int
    sha256: str


@frozen
class SkillRow:
    """One skill of the catalogue."""

    name: str
    front_matter: Mapping[str, Any]
    digest: str
    files: Mapping[str, SkillFileRow]

    def text(self, field: str) -> str:
        """A field of the front matter, "" if it has none."""
        value = self.front_matter.get(field, "")
        return value if isinstance(value, str) else ""

    @property
    def offer(self) -> dict[str, str]:
        """Name and description: what an agent is told before it reads."""
        return {"name": self.name, "description": self.text("description")}


class SkillCatalogue:
    """The catalogue is read once, at first use: it belongs to the image."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._offers: dict[tuple[str, ...], list[dict[str, str]]] = {}

    @cached_property
    def rows(self) -> Mapping[str, SkillRow]:
        """By name, sorted; none if the image has no catalogue."""
        try:
            rows = json.loads(self._paths.skill_catalogue.read_bytes())
        except FileNotFoundError:
            return {}
        return {row["name"]: _row(row) for row in rows}

    def selected(self, patterns: Iterable[str]) -> tuple[SkillRow, ...]:
        """Those whose names match one of these globs."""
        wanted = tuple(patterns)
        return tuple(
            row
            for name, row in self.rows.items()
            if any(globs.matches(pattern, name) for pattern in wanted)
        )

    def offers(self, patterns: tuple[str, ...]) -> list[dict[str, str]]:
        """Names and descriptions of those. Callers must not change the list."""
        if patterns not in self._offers:
            self._offers[patterns] = [row.offer for row in self.selected(patterns)]
        return self._offers[patterns]

    def read(self, row: SkillRow, path: str) -> bytes:
        """One file. Raises KeyError for a file that the skill does not have, AgentboxError if it is
        not the one of the catalogue."""
        file = row.files[path]
        try:
            data = (self._paths.skills / row.name / path).read_bytes()
        except OSError as error:
            raise _damaged(row, path, error.strerror or "") from error
        if sha256_hex(data) != file.sha256:
            raise _damaged(row, path, "it is not the file of the image")
        return data


def _row(row: Mapping[str, Any]) -> SkillRow:
    files = {item["path"]: SkillFileRow(**item) for item in row["files"]}
    return SkillRow(
        name=row["name"], front_matter=row["front_matter"], digest=row["digest"], files=files
    )


def _damaged(row: SkillRow, path: str, reason: str) -> AgentboxError:
    return AgentboxError(
        f"cannot read {path} of skill {row.name}: {reason}", "Run agentbox verify."
    )
