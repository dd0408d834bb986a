"""A docker daemon that is killed during `up`: a daemon of the story's own, with its own data, beside the machine's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from cli_box import CliBox, Ran, wait_for
from told import Told

from agentbox.core import mount_namespace
from agentbox.host.engines.docker.daemon import start_ticks
from agentbox.host.engines.docker.daemon_status import daemon_pid


@dataclass
class Dockerd:
    """A second daemon: no bridge, no firewall rules."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return f"unix://{self.folder}/sock"

    def start(self) -> None:
        """Again and again until it answers."""
        wait_for(self._attempt, 90, "a private dockerd")

    def _attempt(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            (self.folder / "pid").unlink(missing_ok=True)
            places = ("--data-root", "--exec-root", "--pidfile")
            words = [
                word
                for flag in places
                for word in (flag, str(self.folder / flag.removeprefix("--").partition("-")[0]))
            ]
            with (self.folder / "log").open("ab") as log:
                self.process = subprocess.Popen(
                    ["dockerd", *words, "--host", self.host, "--bridge=none", "--iptables=false"],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=mount_namespace.preexec_function(),
                )  # fmt: skip
        asked = subprocess.run(
            ["docker", "--host", self.host, "version"], capture_output=True, timeout=30, check=False
        )
        return asked.returncode == 0

    def kill(self) -> None:
        """With its containerd, whose old process the next one would wait for in vain; and without
        the file that names that process, since in a container whose first process reaps no children
        it stays as a zombie, and appears to run."""
        assert self.process is not None
        assert daemon_pid(self.host) == self.process.pid
        self.process.kill()
        self.process.wait(30)
        _end(_leftovers(self.folder, "containerd"))
        (self.folder / "exec/containerd/containerd.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """Ends it and what it left."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        _end(_leftovers(self.folder, "containerd*"))
        for line in Path("/proc/self/mounts").read_text().splitlines():
            if (at := line.split()[1]).startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", at], check=True)


def _end(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: start_ticks(pid) == 0, 20, f"process {pid} has ended")


def _leftovers(folder: Path, program: str) -> list[int]:
    """Processes of that daemon whose program's name matches."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(folder).encode() in b" ".join(words) and fnmatchcase(
            os.fsdecode(words[0]).rpartition("/")[2], program
        ):
            found.append(int(entry.parent.name))
    return found


@pytest.fixture
def dockerd() -> Iterator[Dockerd]:
    """Below /var/tmp, because a socket's path is short."""
    folder = Path("/var/tmp/agentbox-e2e-dockerd")
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    folder.mkdir()
    made = Dockerd(folder)
    yield made
    made.stop()
    subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=True)


@pytest.mark.timed  # beside the first daemon, which other suites keep busy, a second one is slow
def test_an_engine_that_dies_during_up(
    other: CliBox, told: Told, dockerd: Dockerd, tmp_path: Path
) -> None:
    """Killed while the box starts: exit 6, one sentence that names the daemon's address; started again, `up` works."""
    dockerd.start()
    other.environment["DOCKER_HOST"] = dockerd.host
    try:
        told("The engine dies during `up`", other, _story(other, dockerd, tmp_path))
    finally:
        other.environment.clear()


def _last(said: Path) -> str:
    """The sentence and its hint; the sentence begins with what was being done at that moment."""
    return "".join(said.read_text().splitlines(keepends=True)[-2:])


def _story(other: CliBox, dockerd: Dockerd, tmp_path: Path) -> Ran:
    """The output of the `up` during which it died."""
    out = tmp_path / "out"
    up = other.begin("up", "--yes", out=out)
    said = out.with_suffix(".err")
    wait_for(lambda: "  image " in said.read_text() or None, 120, "the image is loaded")
    dockerd.kill()
    ran = Ran(up.wait(60), "", re.sub("cannot .*: no docker", "cannot …: no docker", _last(said)))
    assert ran.code == 6, ran.err
    assert f"no docker daemon responds at {dockerd.host}" in ran.error()[0]
    dockerd.start()
    other.up()
    assert other("run", "--", "echo", "fine").out == "fine\n"
    other.down()
    return ran
