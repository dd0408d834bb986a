"""A box under test, the same for every engine: start it, query it, break it, end it."""

from __future__ import annotations

import http.client
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.forked_program import run_command

from agentbox.core.paths import CHECKOUT
from agentbox.host.engines.state import BoxState
from agentbox.plan.model import Plan
from harness.outcomes import API_PORT, NAME, Answer, Options, Ran
from harness.waiting import wait_for

PYTHON = "/opt/agentbox/venv/bin/python"
SENTINEL = "/run/agentbox/bootstrap.done"
_RUNS_SECONDS = 0.5
_SUPERVISOR = (
    "import sys; from agentbox.core.paths import Paths; from agentbox.box.supervision.rpc import SupervisorClient;"
    "client = SupervisorClient(Paths.for_this_process());"
)


class Box(ABC):
    """Engine-independent part. `plan` is what the box was rendered from."""

    engine: str
    plan: Plan
    name = NAME  # a second box beside the first has its own, and its own address to publish at
    address = "127.0.0.1"

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder = folder
        self.options = options
        self.state = BoxState(folder / self.name)
        self.state.make()
        self.manifest_file = folder / "agentbox.toml"
        self.manifest_file.write_text(options.manifest)

    @abstractmethod
    def start(self) -> None:
        """Starts the box and returns at once."""

    @abstractmethod
    def boot_again(self) -> None:
        """Starts the stopped box as it is."""

    @abstractmethod
    def log_lines(self) -> list[str]:
        """What the box printed, at least since its last start."""

    @abstractmethod
    def run(self, argv: Sequence[str]) -> Ran:
        """Runs a program in the box as its user. Words that start with `/` are box paths."""

    @abstractmethod
    def exit_code(self) -> int | None:
        """The box's exit code once it has ended, else None."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL to all of the box."""

    @abstractmethod
    def stop(self) -> None:
        """An orderly stop, as the engine does it."""

    @abstractmethod
    def mounted_manifest(self) -> Path:
        """The file on this host that the box sees as its manifest."""

    @abstractmethod
    def first_pid(self) -> int:
        """The pid, as the box sees it, of the process that the engine started."""

    @abstractmethod
    def remove(self) -> None:
        """Removes every trace."""

    def get(
        self, path: str, *, method: str = "GET", token: str = "", body: bytes | None = None, port: int = API_PORT,
        headers: Mapping[str, str] | None = None, timeout: float = 5,
    ) -> Answer:  # fmt: skip
        """One request. Raises OSError while nothing listens."""
        connection = http.client.HTTPConnection(self.address, port, timeout=timeout)
        sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        try:
            connection.request(method, path, body=body, headers=sent)
            response = connection.getresponse()
            return Answer(
                response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def try_get(self, path: str) -> Answer | None:
        """One request, or None while nothing listens."""
        try:
            return self.get(path)
        except (OSError, http.client.HTTPException):
            return None

    def call(self, method: str, path: str, document: Any = None) -> Answer:
        """One request as the admin, with a JSON body."""
        body = None if document is None else json.dumps(document).encode()
        kind = {} if document is None else {"Content-Type": "application/json"}
        return self.get(
            path, method=method, token=self.token(), body=body, headers=kind, timeout=30
        )

    def journal(self) -> list[dict[str, Any]]:
        """The first events of the journal, oldest first."""
        answer = self.call("GET", "/v1/events?limit=1000")
        assert answer.status == 200, answer.body
        found: list[dict[str, Any]] = answer.json["events"]
        return found

    def events(self) -> list[dict[str, Any]]:
        """The JSON lines of the box that are boot events."""
        found = []
        for line in self.log_lines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and entry.get("agentbox.stage") == "bootstrap":
                found.append(entry)
        return found

    def event(self, name: str) -> dict[str, Any]:
        """The last boot event of that name; fails if there is none. An engine's log may be a moment
        behind the box."""

        def found() -> list[dict[str, Any]]:
            return [entry for entry in self.events() if entry["event"] == name]

        return wait_for(
            found, 5, lambda: f"event {name} among {[entry['event'] for entry in self.events()]}"
        )[-1]

    def sealed(self) -> bool:
        """Whether the box ever reported that its boot is complete, or has a sentinel."""
        return _completed(self.events())

    def verdict(self) -> dict[str, Any]:
        """The body of `/ready`; `ready` is None while nothing answers."""
        answer = self.try_get("/ready")
        return answer.json if answer is not None else {"ready": None}

    def wait_ready(self, seconds: float = 60) -> dict[str, Any]:
        """Waits for `/ready` 200 and returns its body; fails with the box's log when the box ends first."""
        asked = time.monotonic()  # whether it runs: an engine's client costs more than the poll

        def ready() -> dict[str, Any] | None:
            nonlocal asked
            answer = self.try_get("/ready")
            if answer is not None and answer.status == 200:
                return answer.json
            if time.monotonic() > asked + _RUNS_SECONDS:
                assert self.exit_code() is None, f"the box ended: {self.log_lines()[-12:]}"
                asked = time.monotonic()
            return None

        return wait_for(
            ready, seconds, lambda: f"ready; verdict {self.verdict()}, log {self.log_lines()[-8:]}"
        )

    def wait_missing(self, text: str, seconds: float) -> dict[str, Any]:
        """Waits until `/ready` is 503 and its `missing` is exactly `text`."""

        def missing() -> dict[str, Any] | None:
            answer = self.try_get("/ready")
            return (
                answer.json
                if answer is not None and answer.status == 503 and text in answer.json["missing"]
                else None
            )

        return wait_for(missing, seconds, lambda: f"{text!r} in missing; verdict {self.verdict()}")

    def wait_event(self, name: str, seconds: float) -> dict[str, Any]:
        """Waits for a boot event; fails at once when the boot is sealed without it."""

        def said() -> list[dict[str, Any]]:
            events = self.events()
            found = [entry for entry in events if entry["event"] == name]
            assert found or not _completed(events), f"the boot was sealed without {name}"
            return found

        return wait_for(said, seconds, lambda: f"event {name}; log {self.log_lines()[-8:]}")[-1]

    def wait_exit(self, seconds: float) -> int:
        """Waits until the box has ended and returns its exit code; fails at once when it seals its boot instead."""
        sealed = sum(event["event"] == "BootstrapCompleted" for event in self.events())

        def ended() -> tuple[int] | None:
            if (code := self.exit_code()) is not None:
                return (code,)
            now = sum(event["event"] == "BootstrapCompleted" for event in self.events())
            assert now == sealed, "the boot was sealed instead of ending"
            return None

        return wait_for(ended, seconds, lambda: f"the box ends; log {self.log_lines()[-5:]}")[0]

    def text(self, path: str) -> str:
        """The content of a file of the box."""
        ran = self.run(["cat", path])
        assert ran.code == 0, ran.err
        return ran.out

    def sentinel(self) -> dict[str, Any]:
        """The sentinel's content."""
        found: dict[str, Any] = json.loads(self.text(SENTINEL))
        return found

    def token(self) -> str:
        """The admin token that the box generated."""
        return self.text("/var/lib/agentbox/secrets/mgmt-key").strip()

    def python(self, code: str, *words: str) -> Ran:
        """Runs code in the box's interpreter, as its user."""
        return self.run([PYTHON, "-I", "-c", code, *words])

    def supervisor(self, expression: str, *words: str) -> str:
        """Evaluates an expression over `client`, the box's supervisord, inside the box; `sys.argv`
        has `words`."""
        ran = self.python(f"{_SUPERVISOR} print({expression})", *words)
        assert ran.code == 0, ran.err
        return ran.out.strip()

    def program_pid(self, name: str) -> int:
        """The pid, as the box sees it, of a supervised program."""
        return int(self.supervisor("client.states()[sys.argv[1]].pid", name))

    def kill_program(self, name: str) -> int:
        """SIGKILL to one supervised program; returns its pid."""
        pid = self.program_pid(name)
        ran = self.python("import os, sys; os.kill(int(sys.argv[1]), 9)", str(pid))
        assert ran.code == 0, ran.err
        return pid

    def cli(self, *words: str, env: Mapping[str, str] | None = None) -> Ran:
        """Runs the product's command line for this box."""
        done = run_command(
            *("--manifest", str(self.manifest_file), *words),
            env={**os.environ, **(env or {}), "AGENTBOX_STATE_DIR": str(self.folder)},
            folder=CHECKOUT,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


def _completed(events: Sequence[Mapping[str, Any]]) -> bool:
    return any(event["event"] == "BootstrapCompleted" for event in events)
