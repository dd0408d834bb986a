"""A box as a docker container, started by compose from the rendered directory plus the test's
override file."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentbox.host.engines.base import StartSpec
from agentbox.host.engines.docker.compose import FILE, compose_command, write_compose_directory
from agentbox.host.engines.state import BoxRecord
from agentbox.plan.render.options import IMAGE_VARIABLE
from harness.box import Box
from harness.images import Images
from harness.outcomes import API_PORT, NAME, Options, Ran
from harness.overlay import baked, lay_over
from harness.plans import plan_of

OVERRIDE = "override.yml"
VOLUMES = ("backups", "branches", "state", "workspace")
NETWORK = f"{NAME}_agentbox"
_SMALL = {"driver_opts": {"type": "tmpfs", "device": "tmpfs", "o": "size=8m,uid=1000,gid=1000"}}


class DockerBox(Box):
    """`docker` column of the contract."""

    engine = "docker"

    def __init__(self, folder: Path, images: Images, options: Options) -> None:
        super().__init__(folder, options)
        hooks = options.test_hooks or bool(options.hooks)
        self.images = images
        self.image = images.hooks if hooks else images.plain
        plan = plan_of(options.manifest, test_hooks=hooks)
        self.plan = options.alter(plan) if options.alter else plan

    @property
    def compose_folder(self) -> Path:
        return self.state.compose_dir

    def render(self) -> None:
        """Writes the compose directory without starting anything."""
        options = self.options
        write_compose_directory(
            StartSpec(
                plan=self.plan, manifest=options.manifest.encode(), state=self.state,
                image_ref=f"{self.image.tag}@{self.image.manifest_digest}", image_id=self.image.image_id,
                strict=options.strict, secrets=options.secrets, hooks=options.hooks,
            )
        )  # fmt: skip
        if options.mounted:
            self.mounted_manifest().write_text(options.mounted)
        if options.edit:
            self._edit()
        (self.compose_folder / OVERRIDE).write_text(json.dumps(self._override()))
        self.state.save_record(
            BoxRecord(
                engine="docker",
                name=self.name,
                api_url=f"http://{self.address}:{API_PORT}",
                image_id=self.image.image_id,
                plan_digest=self.plan.digest,
                folder=str(self.compose_folder),
            )
        )

    def _edit(self) -> None:
        assert self.options.edit is not None
        before = (self.compose_folder / FILE).read_text()
        after = self.options.edit(before)
        assert after != before, "the edit of the compose file changed nothing"
        (self.compose_folder / FILE).write_text(after)

    def _override(self) -> dict[str, Any]:
        files = dict(self.options.files)
        if self.options.alter:
            files |= baked(self.plan, self.options.manifest)
        mounts = lay_over(self.compose_folder, self.images.records(self.image), files)
        service = {"restart": "no", **self.options.service}
        service["volumes"] = [*service.get("volumes", []), *mounts]
        small = {"workspace": _SMALL} if self.options.small_workspace else {}
        return {"services": {"agentbox": service}, "volumes": {**small, **self.options.volumes}}

    def start(self) -> None:
        self.render()
        self.compose("up", "--detach", "--no-build")

    def create(self) -> None:
        """Creates the container without starting it."""
        self.render()
        self.compose("up", "--no-start", "--no-build")

    def compose(self, *arguments: str) -> str:
        """Runs compose over both files; fails with its output."""
        done = self.try_compose(*arguments)
        assert done.code == 0, done.err
        return done.out

    def try_compose(self, *arguments: str) -> Ran:
        """Runs compose over both files."""
        argv = [*compose_command(), "-f", FILE, "-f", OVERRIDE, *arguments]
        given = {IMAGE_VARIABLE: self.options.image_ref} if self.options.image_ref else {}
        env = {**os.environ, **given}
        done = subprocess.run(
            argv, cwd=self.compose_folder, env=env, capture_output=True, text=True, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def log_lines(self) -> list[str]:
        return docker("logs", self.name).splitlines()

    def run(self, argv: Sequence[str]) -> Ran:
        done = subprocess.run(
            ["docker", "exec", self.name, *argv], capture_output=True, text=True, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def inspect(self) -> dict[str, Any]:
        """`docker inspect` of the container."""
        found: dict[str, Any] = json.loads(docker("container", "inspect", self.name))[0]
        return found

    def exists(self) -> bool:
        """Whether a container of that name exists."""
        return (
            docker("container", "ls", "--all", "--quiet", "--filter", f"name=^{self.name}$") != ""
        )

    def exit_code(self) -> int | None:
        state = self.inspect()["State"]
        return state["ExitCode"] if state["Status"] in {"exited", "dead"} else None

    def kill(self) -> None:
        docker("kill", "--signal", "KILL", self.name)

    def stop(self) -> None:
        docker("stop", "--time", str(self.plan.resources.stop_seconds), self.name)

    def boot_again(self) -> None:
        docker("start", self.name)

    def mounted_manifest(self) -> Path:
        return self.compose_folder / "agentbox.toml"

    def first_pid(self) -> int:
        return 1

    def remove(self) -> None:
        """All but the network, which the next box finds as it needs it; `remove_network` ends that."""
        if self.exists():
            docker("rm", "--force", self.name)
        docker("volume", "rm", "--force", *(f"{self.name}-{name}" for name in VOLUMES))


def remove_network() -> None:
    """What `remove` leaves."""
    if docker("network", "ls", "--quiet", "--filter", f"name=^{NETWORK}$"):
        docker("network", "rm", NETWORK)


def docker(*words: str) -> str:
    """Runs the docker client; stdout and stderr together, as `docker logs` splits them."""
    done = subprocess.run(
        ["docker", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
