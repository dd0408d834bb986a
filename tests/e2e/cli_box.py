"""An operator's environment: a manifest, a state directory, and the command as an operator types
it. Everything is real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from agentbox_testkit.wait import pause
from support.forked_program import run_command

from agentbox.core.paths import CHECKOUT
from agentbox.host.engines.state import BoxState, BuildStamp

T = TypeVar("T")
PYTHON = "/opt/agentbox/venv/bin/python"
_PID_OF = (
    "import sys; from agentbox.core.paths import Paths; from agentbox.box.supervision.rpc import SupervisorClient;"
    "print(SupervisorClient(Paths()).states()[sys.argv[1]].pid)"
)


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def error(self) -> tuple[str, str]:
        """The message and the hint; fails unless it is one sentence of the usual form, without a
        traceback."""
        assert "Traceback" not in self.err, self.err
        lines = self.err.splitlines()
        at = next((n for n, line in enumerate(lines) if line.startswith("agentbox: cannot ")), None)
        assert at is not None, self.err
        rest = [line.strip() for line in lines[at + 1 :] if not line.startswith("  | ")]
        assert len(rest) <= 1, self.err
        return lines[at].removeprefix("agentbox: "), "".join(rest)


@dataclass
class PreviousBuilds:
    """What previous boxes of this run left: the image of each port, which is rendered into it, and
    the names of which nothing is left."""

    images: dict[int, BuildStamp] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)


@dataclass
class CliBox:
    """One box: its name, its two ports, its manifest in `folder` and its state beside it."""

    folder: Path
    name: str
    port: int
    extra: str = ""  # more of the manifest
    environment: dict[str, str] = field(default_factory=dict)
    wrapper: tuple[str, ...] = ()  # words before each command

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write()

    @property
    def manifest(self) -> Path:
        return self.folder / "agentbox.toml"

    @property
    def state(self) -> Path:
        return self.folder / "state" / self.name

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write(self, extra: str | None = None) -> None:
        """The manifest, with these lines more."""
        self.extra = self.extra if extra is None else extra
        head = f'meta = {{ schema_version = 1, name = "{self.name}" }}\n'
        ports = f"api.port = {self.port}\nobservability.metrics_port = {self.port + 1}\n"
        slots = 'adapters.pods.use = "off"\nadapters.memory.use = "off"\n'
        self.manifest.write_text(head + ports + slots + self.extra)

    def environ(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AGENTBOX_STATE", "DOCKER_"))
        }
        return {**kept, "AGENTBOX_STATE_DIR": str(self.folder / "state"), **self.environment}

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "agentbox", "--manifest", str(self.manifest), *words]

    def __call__(
        self, *words: str, timeout: float = 120, given: str | None = None, offline: bool = False
    ) -> Ran:
        """Runs one agentbox command to its end; no terminal. `offline`: in a network namespace with no way out."""
        wrapper = (*self.wrapper, *(("unshare", "--net") if offline else ()))
        if not wrapper:
            ended = run_command(
                *("--manifest", str(self.manifest), *words),
                env=self.environ(), folder=CHECKOUT, given=given or "", timeout=timeout,
            )  # fmt: skip
            return Ran(ended.returncode, ended.stdout, ended.stderr)
        done = subprocess.run(
            [*wrapper, *self.argv(*words)], cwd=CHECKOUT, env=self.environ(), capture_output=True, text=True, timeout=timeout, check=False,
            **({"input": given} if given is not None else {"stdin": subprocess.DEVNULL}),
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def begin(self, *words: str, out: Path) -> subprocess.Popen[bytes]:
        """Starts one agentbox command in a session of its own, stdout in a file, stderr beside it."""
        with out.open("wb") as stdout, out.with_suffix(".err").open("wb") as stderr:
            return subprocess.Popen(
                self.argv(*words), cwd=CHECKOUT, env=self.environ(), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                start_new_session=True,
            )  # fmt: skip

    def up(self, *words: str) -> Ran:
        """`up`, which must work."""
        ran = self("up", "--yes", *words)
        assert ran.code == 0, ran.err
        return ran

    def take_image(self, previous: PreviousBuilds) -> None:
        """Puts the previous build into the state of this box, as its own would be: `up` with the same
        inputs takes the image, with others it builds."""
        if self.port in previous.images:
            state = BoxState(self.state)
            state.make()
            state.add_build(previous.images[self.port])

    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self("--json", "status").json
        return found

    def down(self) -> Ran:
        """Removes every trace; must work from any state."""
        ran = self("down", "--volumes", "--yes")
        assert ran.code == 0, ran.err
        return ran

    def inside(self, *words: str) -> str:
        """A program in the box, beside the agents."""
        ran = self("shell", "--", *words)
        assert ran.code == 0, ran.err
        return ran.out

    def kill_program(self, name: str) -> int:
        """KILLs one supervised program of a container box, once it is running; returns its pid in
        the container."""
        pid = wait_for(
            lambda: int(self.inside(PYTHON, "-I", "-c", _PID_OF, name)), 30, f"{name} is up"
        )
        self.inside("bash", "-c", f"kill -KILL {pid}")
        return pid

    def container(self) -> Mapping[str, Any]:
        """`docker inspect` of the box."""
        env = {**os.environ, **self.environment}
        said = subprocess.run(
            ["docker", "container", "inspect", self.name], capture_output=True, check=True, env=env
        )
        found: Mapping[str, Any] = json.loads(said.stdout)[0]
        return found


@contextmanager
def mounted(kind: str, options: str, at: Path) -> Iterator[None]:
    """A file system of its own at a directory."""
    at.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", kind, "-o", options, kind, str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(at)], check=True)


def wait_for(condition: Callable[[], T | None], seconds: float, what: str) -> T:
    """The first true value of `condition`. Fails with `what` when the deadline passes."""
    deadline = time.monotonic() + seconds
    began = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(pause(began, 0.02))
        began = time.monotonic()
    return found


def end(process: subprocess.Popen[bytes], number: signal.Signals, *, group: bool) -> None:
    """Signals a command that `CliBox.begin` started, alone or, as a terminal does, with all of its
    foreground group."""
    if process.poll() is None:
        (os.killpg if group else os.kill)(process.pid, number)
