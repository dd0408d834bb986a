"""The docker engine: compose for start and removal, the docker client for the rest."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines import hostlimits, ports
from agentbox.host.engines.base import Running, Start
from agentbox.host.engines.command import succeeds
from agentbox.host.engines.docker import reach
from agentbox.host.engines.docker.compose import compose, same_secrets, secrets_of, write_folder
from agentbox.host.engines.docker.docker_cli import docker, lines_of_client
from agentbox.host.engines.state import BoxRecord, BoxState

FOLDER_LABEL = "com.docker.compose.project.working_dir"
_SHORTEST_NAME = 2  # docker's own rule: [a-zA-Z0-9][a-zA-Z0-9_.-]+
_QUESTION_SECONDS = 20
PROJECT_LABEL = "com.docker.compose.project"


class Docker:
    """A box as a container of the local docker daemon."""

    name = "docker"
    protections_absent: tuple[str, ...] = ()

    def load(self, archive: Path) -> None:
        """Loads an image archive; the daemon's image id is then the archive's config digest."""
        docker(["load", "--quiet", "--input", str(archive)], doing="load the image into docker")

    def has_image(self, reference: str) -> bool:
        return succeeds(["docker", "image", "inspect", reference])

    def check(self, start: Start) -> None:
        """Raises AgentboxError for what would stop `start`: exit 7 for a port or a name that is taken, 3 for limits,
        1 for a name that docker does not take."""
        if len(start.plan.name) < _SHORTEST_NAME:
            raise AgentboxError(
                f"cannot start the box {start.plan.name}: docker takes names of two characters and more",
                "Give this box another name ([meta] name in the manifest), or use --engine process.",
            )
        found = self._inspect(start.plan.name)
        if found is not None and not _ours(found, start.state):
            folder = (found["Config"]["Labels"] or {}).get(FOLDER_LABEL, "something else")
            raise AgentboxError(
                f"cannot start the box {start.plan.name}: a container of that name belongs to {folder}",
                "Give this box another name ([meta] name in the manifest), or remove that container.",
                exit_code=ExitCode.BUSY,
            )
        cores = int(docker(["info", "--format", "{{.NCPU}}"], doing="ask docker for its cores"))
        hostlimits.check(start.plan, hostlimits.of_docker(cores, reach.reach().host))
        ports.refuse_taken(start.plan.ports, _published(found) if found else (), container_at=ports.docker_publishes)

    def start(self, start: Start) -> BoxRecord:
        """Writes the compose folder, then lets compose bring the container up; with `recreate`, a new one."""
        write_folder(start)
        arguments = ["up", "--detach", "--no-build", "--remove-orphans"]
        arguments += ["--force-recreate"] if start.recreate else []
        doing = f"start the box {start.plan.name}"
        compose(start.state.compose_dir, arguments, doing=doing, env=dict(start.hooks))
        return self.record_of(start)

    def refresh(self, start: Start, record: BoxRecord) -> BoxRecord:
        """Boots the same container again, over the manifest and the secrets as they are now."""
        write_folder(start)
        self.restart(record, start.plan.resources.stop_seconds)
        return self.record_of(start)

    def rewrite(self, start: Start, record: BoxRecord) -> BoxRecord:
        """Only the files that the box has mounted."""
        write_folder(start)
        return self.record_of(start)

    def record_of(self, start: Start) -> BoxRecord:
        """What `start` is remembered as."""
        return BoxRecord(
            engine=self.name, name=start.plan.name, api_url=start.api_url, image_ref=start.image_ref,
            image_id=start.image_id, pulled=start.pulled, plan_digest=start.plan.digest, project=str(start.project or ""),
            strict=start.strict, hooks=dict(start.hooks), test_hooks=start.plan.test_hooks, folder=str(start.state.compose_dir), apply=dict(start.plan.apply), made_of=start.made_of,
        )  # fmt: skip

    def same_secrets(self, start: Start) -> bool:
        return same_secrets(start, secrets_of(start.state))

    def find(self, name: str, state: BoxState, api_url: str) -> BoxRecord | None:
        """A box of ours that runs though its record is lost."""
        if not reach.answers():
            return None
        found = self._inspect(name)
        if found is None or not _ours(found, state):
            return None
        return BoxRecord(
            engine=self.name, name=name, api_url=api_url, image_id=found["Image"], folder=str(state.compose_dir),
            settled=False,
        )  # fmt: skip

    def inspect(self, record: BoxRecord) -> Running:
        found = self._inspect(record.name)
        if found is None or not _belongs(found, Path(record.folder)):
            return Running("absent")
        state = found["State"]
        return Running(_word(state), state["ExitCode"], found["RestartCount"], state["StartedAt"])

    def stop(self, record: BoxRecord, seconds: int) -> None:
        docker(["stop", "--time", str(seconds), record.name], doing=f"stop the box {record.name}", timeout=seconds + 60)

    def restart(self, record: BoxRecord, seconds: int) -> None:
        doing = f"restart the box {record.name}"
        docker(["restart", "--time", str(seconds), record.name], doing=doing, timeout=seconds + 60, whole=True)

    def remove(self, record: BoxRecord, *, volumes: bool) -> None:
        doing = f"remove the box {record.name}"
        project = f"label={PROJECT_LABEL}={record.name}"
        ours = ["--filter", project, "--filter", f"label={FOLDER_LABEL}={Path(record.folder).resolve()}"]
        containers = docker(["ps", "--all", "--quiet", *ours], doing=doing).split()
        if containers:
            docker(["rm", "--force", *containers], doing=doing, whole=True)
        networks = docker(["network", "ls", "--quiet", "--filter", project], doing=doing).split()
        if networks:
            docker(["network", "rm", *networks], doing=doing)
        stored = docker(["volume", "ls", "--quiet", "--filter", project], doing=doing).split() if volumes else []
        if stored:
            docker(["volume", "rm", *stored], doing=doing)

    def leftover(self, name: str, state: BoxState) -> BoxRecord | None:
        """What a box that is down has stored, to be removed by `remove`; None when there is nothing.

        Raises AgentboxError for a box that was once a container while no daemon can say.
        """
        if (now := reach.reach()).state != "answers":
            if state.compose_dir.exists():
                raise reach.unreachable(f"remove what the box {name} stored", now)
            return None
        found = docker(
            ["volume", "ls", "--quiet", "--filter", f"label={PROJECT_LABEL}={name}"],
            doing=f"look for volumes of {name}",
        )
        return BoxRecord(engine=self.name, name=name, api_url="", folder=str(state.compose_dir)) if found else None

    def logs(self, record: BoxRecord, *, follow: bool, lines: int | None, since: str | None) -> Iterator[str]:
        argv = ["logs", *(["--follow"] if follow else []), *(["--since", since] if since else [])]
        argv += ["--tail", str(lines)] if lines is not None else []
        return lines_of_client([*argv, record.name], doing=f"read the log of the box {record.name}")

    def execute(self, record: BoxRecord, argv: Sequence[str], *, terminal: bool) -> int:
        flags = ["--interactive", "--tty"] if terminal else ["--interactive"]
        return subprocess.run(["docker", "exec", *flags, record.name, *argv], check=False).returncode

    def read(self, record: BoxRecord, box_path: str) -> bytes:
        return docker(["exec", record.name, "cat", box_path], doing=f"read {box_path} in the box").encode()

    def _inspect(self, name: str) -> dict[str, Any] | None:
        """None for a container that does not exist. Raises AgentboxError when the daemon cannot say."""
        rows = docker(
            ["container", "ls", "--all", "--no-trunc", "--filter", f"name=^/{name}$", "--format", "{{.ID}}"],
            doing=f"ask docker about the box {name}",
            timeout=_QUESTION_SECONDS,
        ).split()
        if not rows:
            return None
        said = docker(
            ["container", "inspect", rows[0]], doing=f"ask docker about the box {name}", timeout=_QUESTION_SECONDS
        )
        found: dict[str, Any] = json.loads(said)[0]
        return found


def _ours(found: Mapping[str, Any], state: BoxState) -> bool:
    return _belongs(found, state.compose_dir)


def _belongs(found: Mapping[str, Any], folder: Path) -> bool:
    """True when compose made the container from that folder."""
    label = (found["Config"]["Labels"] or {}).get(FOLDER_LABEL, "")
    return bool(label) and Path(label).resolve() == folder.resolve()


def _published(found: Mapping[str, Any]) -> set[int]:
    """Ports of this host that a running container has now."""
    if not found["State"]["Running"]:
        return set()
    rows = [row for bound in (found["NetworkSettings"]["Ports"] or {}).values() for row in bound or ()]
    return {int(row["HostPort"]) for row in rows}


def _word(state: Mapping[str, bool]) -> Literal["running", "restarting", "exited"]:
    if state["Restarting"]:
        return "restarting"
    return "running" if state["Running"] else "exited"
