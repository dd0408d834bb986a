"""Which containers, networks and volumes of a daemon are a box's. The label of the compose project
alone does not tell: another project of this host may have the same name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agentbox.host.engines.docker.docker_cli import docker
from agentbox.plan.names import BACKUPS, BRANCHES, SERVICE, STATE, WORKSPACE

PROJECT_LABEL: Final = "com.docker.compose.project"
DIRECTORY_LABEL: Final = "com.docker.compose.project.working_dir"
_PLAN_VOLUMES: Final = "|".join((STATE, BRANCHES, WORKSPACE, BACKUPS))
_COMMANDS: Final = {
    "container": (("ps", "--all"), "Names", DIRECTORY_LABEL),
    "network": (("network", "ls"), "Name", "com.docker.compose.network"),
    "volume": (("volume", "ls"), "Name", "com.docker.compose.volume"),
}


class Row(NamedTuple):
    """One object. `detail`: of a container the directory of its compose file, of a network or
    volume its name in that file; "" without that label.
    """

    kind: Literal["container", "network", "volume"]
    name: str
    project: str
    detail: str


@dataclass(frozen=True)
class Owner:
    """A box: its compose directory, and the names of its volumes as far as they were noted."""

    box: str
    folder: Path
    volumes: Collection[str] = ()

    def owns(self, row: Row) -> bool:
        """True only if nobody else can have made it. Compose writes the directory on containers
        alone, so names decide for networks and volumes; a volume with a name of its own
        (`backup.folder`) must have been noted.
        """
        if row.project != self.box:
            return False
        if row.kind == "container":
            return bool(row.detail) and Path(row.detail).resolve() == self.folder.resolve()
        if row.kind == "network":
            return (row.name, row.detail) == (f"{self.box}_{SERVICE}", SERVICE)
        usual = re.fullmatch(rf"{re.escape(self.box)}-({_PLAN_VOLUMES})(-g\d+)?", row.name)
        return row.name in self.volumes or (usual is not None and usual[1] == row.detail)


def split(rows: Collection[Row], owners: Collection[Owner]) -> tuple[list[Row], list[Row]]:
    """What the boxes have, and what somebody else has. A network stays while another container
    has the same project."""
    ours = [row for row in rows if any(owner.owns(row) for owner in owners)]
    shared = {row.project for row in rows if row.kind == "container" and row not in ours}
    ours = [row for row in ours if row.kind != "network" or row.project not in shared]
    return ours, [row for row in rows if row not in ours]


def list_rows(doing: str, project: str = "") -> list[Row]:
    """Everything that the daemon has, or what has the label of one project. Raises AgentboxError
    (exit 6) if it does not respond.
    """
    return [row for kind in _COMMANDS for row in _rows(kind, doing, project)]  # type: ignore[arg-type]


def _rows(
    kind: Literal["container", "network", "volume"], doing: str, project: str
) -> Iterator[Row]:
    command, name, label = _COMMANDS[kind]
    only = ("--filter", f"label={PROJECT_LABEL}={project}") if project else ()
    fields = f'{{{{.{name}}}}}\t{{{{.Label "{PROJECT_LABEL}"}}}}\t{{{{.Label "{label}"}}}}'
    for line in docker([*command, *only, "--format", fields], doing=doing).splitlines():
        yield Row(kind, *line.split("\t"))
