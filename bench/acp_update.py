"""An update of an agent on its way to an editor: from its write in the sandbox to the line on stdout of `agentbox acp`.

`python bench/acp_update.py [--count N] [--sessions N...]`. The agent writes one update every 10 ms and puts the monotonic clock
in it, which all processes of a machine share. Between are agent-host, session-host with its store, the API and the bridge.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from measure import Claim, write_results
from support.acp_agent import SCRIPT
from support.session_box import SessionBox

_MANIFEST = f"""
[agents.scripted]
command = ["python3", "-c", {json.dumps(SCRIPT)}]
protocol = "acp"
max_instances = 64
"""
_CONDITIONS = "API, session-host and agent-host on this machine, an update every 10 ms"


class Editor:
    """A client that does nothing but read."""

    def __init__(self, box: SessionBox) -> None:
        self._process = subprocess.Popen(
            box.words("acp"), env=box.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.call(1, "initialize", protocolVersion=1, clientCapabilities={})
        opened = self.call(2, "session/new", cwd=str(box.paths.workspace), mcpServers=[])
        self._session = opened["result"]["sessionId"]

    def updates(self, count: int) -> list[float]:
        """Milliseconds of each."""
        samples: list[float] = []
        prompt = [{"type": "text", "text": f"count {count}"}]
        self.call(3, "session/prompt", samples, sessionId=self._session, prompt=prompt)
        assert len(samples) == count, len(samples)
        return samples

    def call(
        self, number: int, method: str, samples: list[float] | None = None, **params: Any
    ) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            now = time.monotonic_ns()
            received: dict[str, Any] = json.loads(line)
            if received.get("id") == number and "method" not in received:
                return received
            sent = received.get("params", {}).get("update", {}).get("_meta", {}).get("sent")
            if samples is not None and sent is not None:
                samples.append((now - sent) / 1e6)
        raise SystemExit("the bridge has ended")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


def measure(box: SessionBox, sessions: int, count: int) -> list[float]:
    """Milliseconds of all updates of that many sessions at once."""
    editors = [Editor(box) for _ in range(sessions)]
    try:
        with ThreadPoolExecutor(sessions) as pool:
            found = list(pool.map(lambda editor: editor.updates(count), editors))
    finally:
        for editor in editors:
            editor.close()
    return [sample for samples in found for sample in samples]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--sessions", type=int, nargs="+", default=[4, 20])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    try:
        with SessionBox(folder, "", _MANIFEST, {}) as box:
            measure(box, 1, 50)
            rows = [
                Claim(
                    "an update at the client", "ms", measure(box, 1, options.count),
                    must_p95=15, conditions=_CONDITIONS,
                ),
                *(
                    Claim(
                        f"an update at the client, {sessions} sessions at once", "ms",
                        measure(box, sessions, options.count), conditions=_CONDITIONS,
                    )
                    for sessions in options.sessions
                ),
            ]  # fmt: skip
        write_results("acp_update", rows, options.out)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
