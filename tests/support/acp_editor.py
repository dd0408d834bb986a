"""An editor of the Agent Client Protocol: a program that speaks it on stdin and stdout is its agent.
Every message in both directions is judged by the published schema.
"""

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentbox.core.errors import AgentboxError
from agentbox.sessions import protocol


class AcpEditor:
    """A context manager. `updates`: of all sessions, in order; `asked`: requests of the agent, each
    answered with the option of the kind `answer_with`; `notifications`: all others. Raises what
    the schema refuses.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self._words, self._environment = words, environment
        self.answer_with = "allow_once"
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.notifications: list[dict[str, Any]] = []
        self._calls: dict[int, str] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._arrived = threading.Condition()
        self._failure: Exception | None = None
        self._is_over = False

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._words,
            env=dict(self._environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        finally:
            self._process.kill()
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def initialize(self) -> dict[str, Any]:
        """The answer of the agent."""
        return self.call(
            "initialize",
            protocolVersion=protocol.VERSION,
            clientCapabilities={"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True},
        )  # fmt: skip

    def open_session(self, folder: Path) -> str:
        """The id of a new session in that folder. Raises KeyError if it was refused."""
        self.initialize()
        answer = self.call("session/new", cwd=str(folder), mcpServers=[])
        return str(answer["result"]["sessionId"])

    def prompt(self, session: str, text: str) -> str:
        """The reason for the end of the turn. Raises KeyError for an error."""
        return str(self.wait(self.start_prompt(session, text))["result"]["stopReason"])

    def start_prompt(self, session: str, text: str) -> int:
        """The number of the call."""
        prompt = [{"type": "text", "text": text}]
        return self._send_call("session/prompt", {"sessionId": session, "prompt": prompt})

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer."""
        return self.wait(self._send_call(method, params))

    def notify(self, method: str, **params: Any) -> None:
        protocol.check("agent", method, "params", params)
        self._send({"method": method, "params": params})

    def wait(self, call: int, seconds: float = 60) -> dict[str, Any]:
        """The whole answer. Raises TimeoutError, and ConnectionError if the agent has ended."""
        with self._arrived:
            found = self._arrived.wait_for(
                lambda: call in self._answers or self._is_over, timeout=seconds
            )
        if self._failure is not None:
            raise self._failure
        if call in self._answers:
            return self._answers[call]
        raise ConnectionError("the agent has ended") if found else TimeoutError(call)

    def text(self, *, of_box: bool = False) -> str:
        """What the agents said, or what the box told beside."""
        texts = [
            update["content"]["text"]
            for update in self.updates
            if update["sessionUpdate"] == "agent_message_chunk"
        ]
        return "".join(text for text in texts if text.startswith("\n[agentbox] ") is of_box)

    def clear(self) -> None:
        """Forgets the updates."""
        self.updates.clear()

    def _send_call(self, method: str, params: Mapping[str, Any]) -> int:
        protocol.check("agent", method, "params", params)
        number = len(self._calls) + 1
        self._calls[number] = method
        self._send({"id": number, "method": method, "params": params})
        return number

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._take(json.loads(line))
        except (AgentboxError, AssertionError, KeyError, ValueError) as error:
            self._failure = error
        with self._arrived:
            self._is_over = True
            self._arrived.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        assert message["jsonrpc"] == "2.0", message
        method = message.get("method")
        if method is None:
            self._take_answer(message)
            return
        protocol.check("client", method, "params", message.get("params"))
        if "id" in message:
            self.asked.append(message)
            self._answer(message)
        elif method == "session/update":
            self.updates.append(message["params"]["update"])
        else:
            self.notifications.append(message)

    def _take_answer(self, message: dict[str, Any]) -> None:
        if "result" in message:
            protocol.check("agent", self._calls[message["id"]], "result", message["result"])
        with self._arrived:
            self._answers[message["id"]] = message
            self._arrived.notify_all()

    def _answer(self, message: Mapping[str, Any]) -> None:
        if message["method"] != "session/request_permission":
            self._send({"id": message["id"], "error": {"code": -32601, "message": "not offered"}})
            return
        options = message["params"]["options"]
        chosen = [one["optionId"] for one in options if one["kind"] == self.answer_with]
        outcome = {"outcome": "selected", "optionId": chosen[0]}
        self._send({"id": message["id"], "result": {"outcome": outcome}})
