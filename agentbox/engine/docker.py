"""The docker engine: compose for start and removal, the docker client for the rest."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from agentbox.engine.base import Running, Start
from agentbox.engine.command import run, succeeds
from agentbox.engine.compose import compose, write_folder
from agentbox.engine.state import BoxRecord
from agentbox.errors import AgentboxError, ExitCode
from agentbox.settings import HostPaths

_FOLDER_LABEL = "com.docker.compose.project.working_dir"


class Docker:
    """A box as a container of the local docker daemon."""

    name = "docker"
    protections_absent: tuple[str, ...] = ()

    def load(self, archive: Path) -> None:
        """Loads an image archive; the daemon's image id is then the archive's config digest."""
        run(
            ["docker", "load", "--quiet", "--input", str(archive)],
            doing="load the image into docker",
            hint="Is the disk full? `docker system df` shows what takes room.",
        )

    def has_image(self, reference: str) -> bool:
        return succeeds(["docker", "image", "inspect", reference])

    def start(self, start: Start) -> BoxRecord:
        """Writes the compose folder, then lets compose bring the container up."""
        self._refuse_foreign_container(start)
        changed = write_folder(start)
        arguments = ["up", "--detach", "--no-build", "--remove-orphans"]
        if start.recreate or (changed and self._inspect(start.plan.name) is not None):
            arguments.append("--force-recreate")
        compose(start.state.compose_dir, arguments, doing=f"start the box {start.plan.name}", env=dict(start.hooks))
        return BoxRecord(
            engine=self.name, name=start.plan.name, api_url=_url(start), image_ref=start.image_ref,
            image_id=start.image_id, plan_digest=start.plan.digest,
            project=str(start.project or ""), strict=start.strict,
        )  # fmt: skip

    def inspect(self, record: BoxRecord) -> Running:
        found = self._inspect(record.name)
        if found is None:
            return Running("absent")
        state = found["State"]
        return Running(_word(state), state["ExitCode"], found["RestartCount"], state["StartedAt"])

    def stop(self, record: BoxRecord, seconds: int) -> None:
        run(
            ["docker", "stop", "--time", str(seconds), record.name],
            doing=f"stop the box {record.name}",
            timeout=seconds + 60,
        )

    def restart(self, record: BoxRecord, seconds: int) -> None:
        run(
            ["docker", "restart", "--time", str(seconds), record.name],
            doing=f"restart the box {record.name}",
            timeout=seconds + 60,
        )

    def remove(self, record: BoxRecord, *, volumes: bool) -> None:
        folder = _compose_folder(record)
        compose(folder, ["down", *(["--volumes"] if volumes else [])], doing=f"remove the box {record.name}")

    def logs(self, record: BoxRecord, *, follow: bool, lines: int | None, since: str | None) -> Iterator[str]:
        argv = ["docker", "logs", *(["--follow"] if follow else []), *(["--since", since] if since else [])]
        argv += ["--tail", str(lines)] if lines is not None else []
        process = subprocess.Popen(
            [*argv, record.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        assert process.stdout is not None
        try:
            yield from (line.rstrip("\n") for line in process.stdout)
        finally:
            process.terminate()
            process.wait()

    def execute(self, record: BoxRecord, argv: Sequence[str], *, terminal: bool) -> int:
        flags = ["--interactive", "--tty"] if terminal else ["--interactive"]
        return subprocess.run(["docker", "exec", *flags, record.name, *argv], check=False).returncode

    def read(self, record: BoxRecord, box_path: str) -> bytes:
        return run(["docker", "exec", record.name, "cat", box_path], doing=f"read {box_path} in the box").encode()

    def _inspect(self, name: str) -> dict[str, Any] | None:
        if not succeeds(["docker", "container", "inspect", name]):
            return None
        found: dict[str, Any] = json.loads(run(["docker", "container", "inspect", name], doing=f"inspect {name}"))[0]
        return found

    def _refuse_foreign_container(self, start: Start) -> None:
        found = self._inspect(start.plan.name)
        if found is None:
            return
        labels = found["Config"]["Labels"] or {}
        ours = str(start.state.compose_dir)
        folder = labels.get(_FOLDER_LABEL, "")
        if folder != ours:
            raise AgentboxError(
                f"cannot start the box {start.plan.name}: a container of that name belongs to {folder or 'something else'}",
                "Give this box another name ([meta] name in agentbox.toml), or remove that container.",
                exit_code=ExitCode.BUSY,
            )


def _word(state: Mapping[str, bool]) -> Literal["running", "restarting", "exited"]:
    if state["Restarting"]:
        return "restarting"
    return "running" if state["Running"] else "exited"


def _url(start: Start) -> str:
    address = start.plan.api.publish_address
    host = "127.0.0.1" if address in {"0.0.0.0", "::"} else address
    return f"http://{f'[{host}]' if ':' in host else host}:{start.plan.api.port}"


def _compose_folder(record: BoxRecord) -> Path:
    return HostPaths.of_this_user().box(record.name) / "compose"
