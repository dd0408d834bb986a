"""A real Chromium, without a window, driven over the DevTools protocol (version 1.3) as a person
would."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PROGRAM = "chromium-headless-shell"
SECONDS = 30.0
_KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
}  # key codes, and the text that a key produces


class Page:
    """One tab. `told` are the browser's own messages: errors, refusals of the policy, requests."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._number = socket, 0
        self.told: list[dict[str, Any]] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def go(self, url: str) -> None:
        """Returns when the document and its scripts are loaded."""
        self._ask("Page.navigate", url=url)
        self.until(
            f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'"
        )

    def find(self, expression: str) -> Any:
        """The value of an expression in the page. Raises AssertionError for an exception in it."""
        found = self._ask(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            allowUnsafeEvalBlockedByCSP=False,
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> Any:
        """Its value as soon as that is true. Raises AssertionError with the text of the page at the
        timeout."""
        deadline = time.monotonic() + SECONDS
        while not (value := self.find(expression)):
            assert time.monotonic() < deadline, (
                f"{expression}: {self.find('document.body.innerText')}\n{self.troubles}"
            )
            time.sleep(0.02)
        return value

    def press(self, *keys: str) -> None:
        """Keys by name, or one letter each."""
        for key in keys:
            code, text = _KEYS.get(key, (ord(key[0].upper()), key))
            said = {"key": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
            self._ask("Input.dispatchKeyEvent", type="keyDown", **said)
            self._ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        """Into what has the focus."""
        self._ask("Input.insertText", text=text)

    @property
    def troubles(self) -> list[Any]:
        """Exceptions, errors in the log, and dialogs of scripts."""
        kinds = ("Runtime.exceptionThrown", "Page.javascriptDialogOpening")
        errors = [one["params"] for one in self.told if one["method"] in kinds]
        return errors + [one["params"] for one in self.told if one["method"] == "Log.entryAdded"]

    @property
    def requests(self) -> set[str]:
        """Requested URLs."""
        return {
            one["params"]["request"]["url"]
            for one in self.told
            if one["method"] == "Network.requestWillBeSent"
        }

    def _ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        session = {"sessionId": self._session} if getattr(self, "_session", "") else {}
        self._socket.send(
            json.dumps({"id": self._number, "method": method, "params": params, **session})
        )
        while True:
            said = json.loads(self._socket.recv(timeout=SECONDS))
            if said.get("id") == self._number:
                assert "error" not in said, (method, said)
                return said["result"]
            self.told.append(said)


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """An empty tab of a browser whose profile is in `folder`."""
    program = shutil.which(PROGRAM)
    assert program is not None, f"install {PROGRAM} (./agentbox.sh test does)"
    log = folder / "browser.log"
    words = [
        program, "--remote-debugging-port=0", f"--user-data-dir={folder}", "--no-sandbox", "--disable-gpu",
        "--disable-dev-shm-usage", "--no-first-run",
    ]  # fmt: skip
    with (
        log.open("wb") as out,
        subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True) as process,
    ):
        try:
            with connect(_address(folder, process), max_size=None) as socket:
                yield Page(socket)
        finally:
            os.killpg(process.pid, 9)


def _address(folder: Path, process: "subprocess.Popen[bytes]") -> str:
    """Where it listens, from the file that it writes then: the port, and a path."""
    file, deadline = folder / "DevToolsActivePort", time.monotonic() + SECONDS
    while not file.exists() or file.read_text().count("\n") < 1:
        assert process.poll() is None, (folder / "browser.log").read_text()
        assert time.monotonic() < deadline, (folder / "browser.log").read_text()
        time.sleep(0.02)
    port, path = file.read_text().splitlines()
    return f"ws://127.0.0.1:{port}{path}"
