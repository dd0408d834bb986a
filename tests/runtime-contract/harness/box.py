"""A box under test, the same for every engine: start it, ask it, break it, end it."""

from __future__ import annotations

import http.client
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentbox.plan.model import Plan
from harness.waiting import wait_for

NAME = "agentbox-rc"
API_PORT = 19090
METRICS_PORT = 19091
MANIFEST = f"""\
meta = {{ schema_version = 1, name = "{NAME}" }}
api = {{ port = {API_PORT} }}
observability = {{ metrics_port = {METRICS_PORT} }}
adapters = {{ pods = {{ use = "off" }}, memory = {{ use = "off" }} }}
"""


@dataclass(frozen=True)
class Answer:
    """One HTTP answer, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Ran:
    """A program that ended inside the box."""

    code: int
    out: str
    err: str


@dataclass
class Options:
    """What a test changes about the box before it starts."""

    manifest: str = MANIFEST
    hooks: dict[str, str] = field(default_factory=dict)  # AGENTBOX_TEST_*; picks the image with test hooks
    strict: bool = False
    override: dict[str, Any] = field(default_factory=dict)  # merged over the compose service (containers only)
    secrets: dict[str, str] = field(default_factory=dict)
    test_hooks: bool = False
    project: Path | None = None


class Box(ABC):
    """Engine-independent part. `plan` is what the box was rendered from."""

    engine: str
    plan: Plan

    @abstractmethod
    def start(self) -> None:
        """Starts the box and returns at once."""

    @abstractmethod
    def log_lines(self) -> list[str]:
        """Everything the box printed so far, from its first start."""

    @abstractmethod
    def run(self, argv: Sequence[str]) -> Ran:
        """Runs a program in the box as its user."""

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
    def remove(self) -> None:
        """Removes every trace."""

    @abstractmethod
    def kill_program(self, name: str, signal: str = "KILL") -> int:
        """Signals one supervised program; returns its pid."""

    def get(self, path: str, *, method: str = "GET", token: str = "", body: bytes | None = None, port: int = API_PORT, headers: Mapping[str, str] | None = None, timeout: float = 5) -> Answer:  # fmt: skip
        """One request. Raises OSError while nothing listens."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        try:
            connection.request(method, path, body=body, headers=sent)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def try_get(self, path: str) -> Answer | None:
        """One request, or None while nothing listens."""
        try:
            return self.get(path)
        except (OSError, http.client.HTTPException):
            return None

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
        """The last boot event of that name; fails when there is none."""
        found = [entry for entry in self.events() if entry["event"] == name]
        assert found, f"no event {name} among {[entry['event'] for entry in self.events()]}"
        return found[-1]

    def verdict(self) -> dict[str, Any]:
        """The body of `/ready`; fails while nothing answers."""
        answer = self.try_get("/ready")
        return answer.json if answer is not None else {"ready": None}

    def wait_ready(self, seconds: float = 30) -> dict[str, Any]:
        """Waits for `/ready` 200 and returns its body; fails with the box's log when the box ends first."""

        def ready() -> dict[str, Any] | None:
            assert self.exit_code() is None, f"the box ended: {self.log_lines()[-12:]}"
            answer = self.try_get("/ready")
            return answer.json if answer is not None and answer.status == 200 else None

        return wait_for(ready, seconds, f"ready; last lines {self.log_lines()[-8:]}")

    def wait_missing(self, text: str, seconds: float) -> dict[str, Any]:
        """Waits until `/ready` is 503 and its `missing` holds `text`."""

        def missing() -> dict[str, Any] | None:
            answer = self.try_get("/ready")
            if answer is None or answer.status != 503:
                return None
            return answer.json if any(text in entry for entry in answer.json["missing"]) else None

        return wait_for(missing, seconds, f"{text!r} in missing; verdict {self.verdict()}")

    def wait_exit(self, seconds: float) -> int:
        """Waits until the box has ended and returns its exit code."""
        code = wait_for(
            lambda: None if self.exit_code() is None else (self.exit_code(),),
            seconds,
            f"the box ends; {self.log_lines()[-5:]}",
        )
        assert code[0] is not None
        return code[0]

    def token(self) -> str:
        """The admin token that the box generated."""
        ran = self.run(["cat", "/var/lib/agentbox/secrets/mgmt-key"])
        assert ran.code == 0, ran.err
        return ran.out.strip()
