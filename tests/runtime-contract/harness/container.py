"""A box as a docker container, started by compose from the rendered folder plus the test's override file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentbox.engine.base import Start
from agentbox.engine.compose import FILE, program, write_folder
from agentbox.engine.state import BoxState
from harness.box import NAME, Box, Options, Ran
from harness.images import Images
from harness.plans import plan_of

OVERRIDE = "override.yml"


class DockerBox(Box):
    """`docker` column of the contract."""

    engine = "docker"

    def __init__(self, folder: Path, images: Images, options: Options) -> None:
        self.options = options
        hooks = options.test_hooks or bool(options.hooks)
        self.image = images.hooks if hooks else images.plain
        self.plan = plan_of(options.manifest, test_hooks=hooks)
        self.state = BoxState(folder / "state")
        self.state.make()

    @property
    def folder(self) -> Path:
        return self.state.compose_dir

    def render(self) -> None:
        """Writes the compose folder without starting anything."""
        write_folder(
            Start(
                plan=self.plan, manifest=self.options.manifest.encode(), state=self.state,
                image_ref=f"{self.image.tag}@{self.image.manifest_digest}", image_id=self.image.image_id,
                strict=self.options.strict, secrets=self.options.secrets, project=self.options.project,
            )
        )  # fmt: skip
        service = {"restart": "no", **self.options.override}
        if self.options.hooks:
            service["environment"] = {**self.options.hooks, **service.get("environment", {})}
        (self.folder / OVERRIDE).write_text(json.dumps({"services": {"agentbox": service}}))

    def start(self) -> None:
        self.render()
        self.compose("up", "--detach", "--no-build")

    def start_without_network(self) -> None:
        """Starts the rendered container with no network at all: compose creates it, the engine unplugs it, then it runs."""
        self.compose("up", "--no-start", "--no-build")
        docker("network", "disconnect", f"{NAME}_agentbox", NAME)
        docker("start", NAME)

    def compose(self, *arguments: str) -> str:
        """Runs compose over both files."""
        argv = [*program(), "-f", FILE, "-f", OVERRIDE, *arguments]
        done = subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def log_lines(self) -> list[str]:
        return docker("logs", NAME).splitlines()

    def run(self, argv: Sequence[str]) -> Ran:
        done = subprocess.run(["docker", "exec", NAME, *argv], capture_output=True, text=True, check=False)
        return Ran(done.returncode, done.stdout, done.stderr)

    def inspect(self) -> dict[str, Any]:
        """`docker inspect` of the container."""
        found: dict[str, Any] = json.loads(docker("container", "inspect", NAME))[0]
        return found

    def exit_code(self) -> int | None:
        state = self.inspect()["State"]
        return state["ExitCode"] if state["Status"] in {"exited", "dead"} else None

    def kill(self) -> None:
        docker("kill", "--signal", "KILL", NAME)

    def stop(self) -> None:
        docker("stop", "--time", str(self.plan.resources.stop_seconds), NAME)

    def start_again(self) -> None:
        """Starts the same container again."""
        docker("start", NAME)

    def remove(self) -> None:
        if (self.folder / OVERRIDE).exists():
            self.compose("down", "--volumes", "--timeout", "0")

    def kill_program(self, name: str, signal: str = "KILL") -> int:
        pid = self.program_pid(name)
        ran = self.run(["bash", "-c", f"kill -{signal} {pid}"])
        assert ran.code == 0, ran.err
        return pid

    def program_pid(self, name: str) -> int:
        """The pid, inside the box, of a supervised program, as the sentinel or supervisord names it."""
        code = (
            "import sys; from agentbox.settings import Paths; from agentbox.supervision.rpc import SupervisorClient;"
            "print(SupervisorClient(Paths()).states()[sys.argv[1]].pid)"
        )
        ran = self.run(["/opt/agentbox/venv/bin/python", "-I", "-c", code, name])
        assert ran.code == 0, ran.err
        return int(ran.out)


def docker(*words: str) -> str:
    """Runs the docker client; stdout and stderr together, as `docker logs` splits them."""
    done = subprocess.run(["docker", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout
