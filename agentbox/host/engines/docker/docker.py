"""The docker engine: compose for start and removal, the docker client for everything else."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines import host_limits, ports
from agentbox.host.engines.base import BoxStatus, StartSpec, StoredStart
from agentbox.host.engines.command import succeeds
from agentbox.host.engines.docker import daemon_status
from agentbox.host.engines.docker.compose import (
    compose,
    secrets_directory,
    secrets_match,
    store_directory,
    write_compose_directory,
    write_stored_directory,
)
from agentbox.host.engines.docker.docker_cli import docker, stream_lines
from agentbox.host.engines.docker.inspection import published_ports, state_name
from agentbox.host.engines.docker.one_shot import discard, has_state, run_inside, run_once
from agentbox.host.engines.docker.ownership import DIRECTORY_LABEL, Owner, list_rows, split
from agentbox.host.engines.one_shot import OneShot
from agentbox.host.engines.state import BoxRecord, BoxState

_MIN_NAME_LENGTH = 2  # docker's rule: [a-zA-Z0-9][a-zA-Z0-9_.-]+
_QUERY_SECONDS = 20
# Compose 1.29 otherwise mounts the volumes of the old container, whatever the file says.
RECREATE = ("--force-recreate", "--renew-anon-volumes")


class DockerEngine:
    """Runs a box as a container of the local docker daemon."""

    name = "docker"
    protections_absent: tuple[str, ...] = ()

    def load(self, archive: Path) -> None:
        """Loads an image archive; the image id is then the archive's config digest."""
        docker(["load", "--quiet", "--input", str(archive)], doing="load the image into docker")

    def has_image(self, reference: str) -> bool:
        return succeeds(["docker", "image", "inspect", reference])

    def check(self, start: StartSpec) -> None:
        """Raises AgentboxError if `start` would fail: exit 7 for a port or name in use, 3 for
        limits, 1 for a name that docker does not allow.
        """
        if len(start.name) < _MIN_NAME_LENGTH:
            raise AgentboxError(
                f"cannot start the box {start.name}: docker requires names of at least two "
                "characters",
                "Give this box another name ([meta] name in the manifest), or use --engine "
                "process.",
            )
        container = self._inspect(start.name)
        if container is not None and not _is_box_container(container, start.state):
            directory = (container["Config"]["Labels"] or {}).get(DIRECTORY_LABEL, "something else")
            raise AgentboxError(
                f"cannot start the box {start.name}: a container of that name belongs to "
                f"{directory}",
                "Give this box another name ([meta] name in the manifest), or remove that "
                "container.",
                exit_code=ExitCode.BUSY,
            )
        cores = int(
            docker(["info", "--format", "{{.NCPU}}"], doing="get the number of cores from docker")
        )
        host_limits.check(
            start.plan, host_limits.docker_limits(cores, daemon_status.query_status().host)
        )
        ports.require_free_ports(
            start.plan.ports,
            published_ports(container) if container else (),
            find_container=ports.publishing_container,
        )

    def start(self, start: StartSpec) -> BoxRecord:
        """Writes the compose directory, then starts the container; with `recreate`, a new one."""
        write_compose_directory(start)
        arguments = ["up", "--detach", "--no-build", "--remove-orphans"]
        arguments += RECREATE if start.recreate else []
        doing = f"start the box {start.name}"
        compose(start.state.compose_dir, arguments, doing=doing, env=dict(start.hooks))
        return self.make_record(start)

    def store_files(self, start: StartSpec, folder: Path) -> None:
        """Keeps the compose directory of a start in `folder`, without secrets."""
        store_directory(start.state.compose_dir, folder)

    def start_stored(self, stored: StoredStart) -> BoxRecord:
        """Puts the kept compose directory in place and makes a new container of it."""
        write_stored_directory(stored)
        arguments = ["up", "--detach", "--no-build", "--remove-orphans", *RECREATE]
        doing = f"start the box {stored.record.name}"
        compose(stored.state.compose_dir, arguments, doing=doing, env=dict(stored.record.hooks))
        return replace(stored.record, settled=True)

    def run_once(self, shot: OneShot, doing: str, stdin: IO[bytes] | None = None) -> str:
        """Runs one program of the image on the volumes of the box."""
        return run_once(shot, doing, stdin)

    def has_state(self, name: str, state: BoxState, volumes: Mapping[str, str]) -> bool:
        return has_state(name, volumes)

    def discard_volumes(self, name: str, state: BoxState, volumes: Mapping[str, str]) -> None:
        discard(name, volumes)

    def refresh(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        """Restarts the same container with the current manifest and secrets."""
        write_compose_directory(start)
        self.restart(record, start.plan.resources.stop_seconds)
        return self.make_record(start)

    def rewrite(self, start: StartSpec, record: BoxRecord) -> BoxRecord:
        write_compose_directory(start)
        return self.make_record(start)

    def make_record(self, start: StartSpec) -> BoxRecord:
        """Return the record of a start."""
        return BoxRecord(
            engine=self.name,
            name=start.name,
            api_url=start.api_url,
            image_ref=start.image_ref,
            image_id=start.image_id,
            pulled=start.pulled,
            plan_digest=start.plan.digest,
            project=str(start.project or ""),
            strict=start.strict,
            hooks=dict(start.hooks),
            test_hooks=start.plan.test_hooks,
            folder=str(start.state.compose_dir),
            apply=dict(start.plan.apply),
            made_of=start.made_of,
            volumes=dict(start.volumes),
        )

    def secrets_match(self, start: StartSpec) -> bool:
        return secrets_match(start, secrets_directory(start.state))

    def find_running(self, name: str, state: BoxState, api_url: str) -> BoxRecord | None:
        """Find a running box of this state directory whose record is lost."""
        if not daemon_status.is_reachable():
            return None
        container = self._inspect(name)
        if container is None or not _is_box_container(container, state):
            return None
        return BoxRecord(
            engine=self.name,
            name=name,
            api_url=api_url,
            image_id=container["Image"],
            folder=str(state.compose_dir),
            settled=False,
        )

    def inspect(self, record: BoxRecord) -> BoxStatus:
        container = self._inspect(record.name)
        if container is None or not _was_created_from(container, Path(record.folder)):
            return BoxStatus("absent")
        state = container["State"]
        return BoxStatus(
            state_name(state), state["ExitCode"], container["RestartCount"], state["StartedAt"]
        )

    def stop(self, record: BoxRecord, seconds: int) -> None:
        docker(
            ["stop", "--time", str(seconds), record.name],
            doing=f"stop the box {record.name}",
            timeout=seconds + 60,
        )

    def restart(self, record: BoxRecord, seconds: int) -> None:
        doing = f"restart the box {record.name}"
        docker(
            ["restart", "--time", str(seconds), record.name],
            doing=doing,
            timeout=seconds + 60,
            uninterruptible=True,
        )

    def remove(self, record: BoxRecord, *, volumes: bool) -> None:
        doing = f"remove the box {record.name}"
        owned, _ = split(list_rows(doing, record.name), [_owner(record.name, Path(record.folder))])
        names = {
            kind: [row.name for row in owned if row.kind == kind]
            for kind in ("container", "network", "volume")
        }
        if names["container"]:
            docker(["rm", "--force", *names["container"]], doing=doing, uninterruptible=True)
        if names["network"]:
            docker(["network", "rm", *names["network"]], doing=doing)
        if volumes and names["volume"]:
            docker(["volume", "rm", *names["volume"]], doing=doing)

    def find_stored(self, name: str, state: BoxState) -> BoxRecord | None:
        """Return a record of the stored data of a box that is down, for `remove`; None if there is
        none.

        Raises AgentboxError for a box that was a container if no daemon responds.
        """
        if (status := daemon_status.query_status()).state != "answers":
            if state.compose_dir.exists():
                raise daemon_status.unreachable_error(
                    f"remove the stored data of the box {name}", status
                )
            return None
        rows = list_rows(f"list the volumes of {name}", name)
        owned, _ = split(rows, [_owner(name, state.compose_dir)])
        return (
            BoxRecord(engine=self.name, name=name, api_url="", folder=str(state.compose_dir))
            if any(row.kind == "volume" for row in owned)
            else None
        )

    def logs(
        self, record: BoxRecord, *, follow: bool, lines: int | None, since: str | None
    ) -> Iterator[str]:
        argv = ["logs", *(["--follow"] if follow else []), *(["--since", since] if since else [])]
        argv += ["--tail", str(lines)] if lines is not None else []
        return stream_lines([*argv, record.name], doing=f"read the log of the box {record.name}")

    def execute(self, record: BoxRecord, argv: Sequence[str], *, terminal: bool) -> int:
        flags = ["--interactive", "--tty"] if terminal else ["--interactive"]
        return subprocess.run(
            ["docker", "exec", *flags, record.name, *argv], check=False
        ).returncode

    def read(self, record: BoxRecord, box_path: str) -> bytes:
        return docker(
            ["exec", record.name, "cat", box_path], doing=f"read {box_path} in the box"
        ).encode()

    def run_inside(self, record: BoxRecord, module: str, stdin: str, seconds: float) -> str:
        """Runs a module beside the programs of the box."""
        return run_inside(record.name, module, stdin, seconds)

    def _inspect(self, name: str) -> dict[str, Any] | None:
        """Return None for a container that does not exist. Raises AgentboxError if the daemon does
        not respond.
        """
        rows = docker(
            [
                "container",
                "ls",
                "--all",
                "--no-trunc",
                "--filter",
                f"name=^/{name}$",
                "--format",
                "{{.ID}}",
            ],
            doing=f"query docker for the box {name}",
            timeout=_QUERY_SECONDS,
        ).split()
        if not rows:
            return None
        output = docker(
            ["container", "inspect", rows[0]],
            doing=f"query docker for the box {name}",
            timeout=_QUERY_SECONDS,
        )
        container: dict[str, Any] = json.loads(output)[0]
        return container


def _owner(name: str, folder: Path) -> Owner:
    from agentbox.host.uninstall.inventory import Inventory  # needed for a removal only

    return Owner(name, folder, Inventory(folder.parent.parent).names("volume"))


def _is_box_container(container: Mapping[str, Any], state: BoxState) -> bool:
    return _was_created_from(container, state.compose_dir)


def _was_created_from(container: Mapping[str, Any], directory: Path) -> bool:
    """True if compose created the container from that directory."""
    label = (container["Config"]["Labels"] or {}).get(DIRECTORY_LABEL, "")
    return bool(label) and Path(label).resolve() == directory.resolve()
