"""What the model gateway adds to a call, beside the same call made directly to the same server, turn by turn in one run.

    python bench/llm.py [--runs N] [--out FILE]

API, agent-host and gateway are the real programs, the token is that of a running agent, its calls go through rights, privacy
filter, queue and a budget that is on disk before each call. The model server answers at once, in a process of its own.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from measure import Claim, run_main, write_results
from support.story_box import StoryBox

from agentbox.core.errors import AgentboxError

KEY = "operator-key-0123456789abcdef"
SERVER = """
import sys
from support.model_turns import ModelTurn
from support.model_server import ModelServer, play_script
with ModelServer(reply=play_script([ModelTurn(text="word " * 40)])) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""
MANIFEST = """
[providers.models]
enabled = true
base_url = "{url}/v1"
env_var = "MODEL_KEY"

[agents.caller]
command = ["/bin/sh", "-c", 'printf %s "$OPENAI_API_KEY" > token; exec sleep 100000']
provider = "models"
workspace = "direct"
llm.max_tokens = 1000000000
llm.max_calls = 1000000
"""
_PATIENCE = 60.0
SIZES = {"1 KiB": 1 << 10, "50 KiB": 50 << 10}


class Line:
    """A kept connection to one of the two."""

    def __init__(self, url: str, path: str, token: str) -> None:
        self._line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        self._path, self._head = (
            path,
            {"authorization": f"Bearer {token}", "content-type": "application/json"},
        )

    def status(self, body: bytes) -> int:
        """Of one call."""
        self._line.request("POST", self._path, body, self._head)
        answer = self._line.getresponse()
        answer.read()
        return answer.status

    def call(self, body: bytes) -> tuple[float, float]:
        """Milliseconds to the first byte of the answer and to its end. Raises RuntimeError for another status than 200."""
        began = time.perf_counter()
        self._line.request("POST", self._path, body, self._head)
        answer = self._line.getresponse()
        first = time.perf_counter()
        said = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {said[:200]!r}")
        return (first - began) * 1000, (time.perf_counter() - began) * 1000


def until(condition: Callable[[], bool], what: str) -> None:
    """Raises AgentboxError when it does not hold within a minute."""
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AgentboxError(f"cannot measure: not within {_PATIENCE:g} s: {what}")
        time.sleep(0.01)


def body_of(size: int, stream: bool) -> bytes:
    """A conversation of about that many bytes, in English words."""
    words = "the quick brown fox jumps over the lazy dog "
    text = (words * (size // len(words) + 1))[:size]
    return json.dumps(
        {"model": "small-1", "stream": stream, "messages": [{"role": "user", "content": text}]}
    ).encode()


def measured(direct: Line, gateway: Line, runs: int) -> list[Claim]:
    """Both take turns, so that whatever else the machine does meets both."""
    claims = []
    for stream in (False, True):
        for size, count in SIZES.items():
            body, name = body_of(count, stream), f"{'stream' if stream else 'whole'}, {size}"
            pairs = []
            for turn in range(runs + 20):
                order = (direct, gateway) if turn % 2 else (gateway, direct)
                found = {line: line.call(body) for line in order}
                if turn >= 20:  # the first ones open connections and fill caches
                    pairs.append((found[direct], found[gateway]))
            at = 0 if stream else 1
            words = "to the first byte" if stream else "to the last byte"
            claims += [
                Claim(f"direct, {name}", "ms", [one[at] for one, _ in pairs], conditions=words),
                Claim(f"gateway, {name}", "ms", [two[at] for _, two in pairs], conditions=words, peer=f"direct, {name}"),
                Claim(
                    f"overhead, {name}", "ms", [two[at] - one[at] for one, two in pairs],
                    must_p95=8.0, conditions=f"{words}; goal p50 3, p95 8",
                ),
            ]  # fmt: skip
    return claims


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--runs", type=int, default=400, help="calls of each kind")
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    words = [sys.executable, "-c", SERVER]
    with (
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
    ):
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with StoryBox(Path(folder) / "box", url, MANIFEST, {"MODEL_KEY": KEY}) as box:
            box.client.agents.spawn({"name": "caller"})
            token = box.paths.workspace / "token"
            until(lambda: token.exists() and bool(token.read_text()), "the agent has its token")
            gateway = Line(
                f"http://127.0.0.1:{box.port}", "/llm/models/v1/chat/completions", token.read_text()
            )
            until(lambda: gateway.status(body_of(1, False)) == 200, "the gateway has heard of it")
            claims = measured(Line(url, "/v1/chat/completions", KEY), gateway, chosen.runs)
        server.terminate()
    write_results("llm", claims, chosen.out)


if __name__ == "__main__":
    run_main(main)
