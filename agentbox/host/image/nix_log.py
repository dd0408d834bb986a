"""Parses the output of `nix --log-format internal-json`: running derivations, their logs, the
reason of a failure.

The numbers are those of Nix's logging.hh (2.8 and 2.18 alike): activity 105 is a build whose first
field is the derivation's path, result 101 is a line of its log, message level 0 is an error.
"""

import json
import re
from collections import deque
from typing import Any

from agentbox.core.progress import Progress

_BUILD, _LOG_LINE, _ERROR = 105, 101, 0
_MAX_LINES = 20
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STORE_NAME = re.compile(r"/nix/store/[0-9a-z]{32}-(?P<name>.+?)(\.drv)?$")


def store_name(path: str) -> str:
    """`tree-base` of `/nix/store/<hash>-tree-base.drv`."""
    match = _STORE_NAME.match(path)
    return match["name"] if match else path


class BuildLog:
    """Follows one run of Nix. Its builds become stages of the progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._running: dict[int, str] = {}
        self._current: int | None = None
        self._lines: dict[str, deque[str]] = {}
        self.built: list[str] = []
        self.errors: list[str] = []

    def feed(self, line: str) -> None:
        """Parses one line of stderr. A line that is not an event is an error of Nix's startup."""
        if not line.startswith("@nix "):
            if line.strip():
                self.errors.append(_COLOUR.sub("", line.rstrip()))
            return
        event = json.loads(line[5:])
        match event["action"]:
            case "start" if event["type"] == _BUILD:
                self._start(event)
            case "stop" if event["id"] in self._running:
                self._stop(event["id"])
            case "result" if event["type"] == _LOG_LINE and event["id"] in self._running:
                self._lines[self._running[event["id"]]].append(
                    _COLOUR.sub("", str(event["fields"][0]))
                )
            case "msg" if event["level"] == _ERROR:
                self.errors.append(_COLOUR.sub("", event["msg"]))
            case _:
                return

    def failure_lines(self) -> list[str]:
        """Return the last lines of the failed derivation, else Nix's own messages."""
        text = "\n".join(self.errors)
        for name, lines in self._lines.items():
            if f"-{name}.drv' failed" in text and lines:
                return list(lines)
        return text.splitlines()[-_MAX_LINES:]

    def failed_derivation(self) -> str:
        """Return the name of the failed derivation, "" if evaluation failed."""
        text = "\n".join(self.errors)
        return next((name for name in self._lines if f"-{name}.drv' failed" in text), "")

    def _start(self, event: dict[str, Any]) -> None:
        name = store_name(event["fields"][0])
        self._running[event["id"]] = name
        self._lines[name] = deque(maxlen=_MAX_LINES)
        self._show()

    def _stop(self, activity: int) -> None:
        self.built.append(self._running.pop(activity))
        if self._current == activity:
            self._current = None
            self._progress.done()
            self._show()

    def _show(self) -> None:
        """Shows one stage at a time, though Nix builds several: the oldest running one."""
        if self._current is None and self._running:
            self._current = next(iter(self._running))
            self._progress.stage(self._running[self._current])
