"""A call of a tool of an MCP server through gateway, mcp-host and sandbox, beside the same program on a bare pipe."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import httpx
from agent_api import milliseconds
from measure import Claim, run_main, write_results
from support.mcp_box import McpBox
from support.mcp_servers import CALCULATOR

_PYTHON = "/usr/bin/python3"
_MANIFEST = f"""
[agents.user]
command = ["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']
mcp = ["calc"]
[mcp.servers.calc]
command = ["{_PYTHON}", "-c", '''{CALCULATOR}''']
pin = "first-use"
"""


def bare(runs: int) -> list[float]:
    """The program on pipes of this one."""
    server = subprocess.Popen(
        [_PYTHON, "-c", CALCULATOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    stdin, stdout = server.stdin, server.stdout

    def call() -> None:
        stdin.write(json.dumps(_request("add")).encode() + b"\n")
        stdin.flush()
        assert b'"sum"' in stdout.readline()

    try:
        return milliseconds(call, runs)
    finally:
        server.kill()
        server.wait()


def boxed(runs: int) -> tuple[list[float], list[float], int]:
    """Through the box on a kept connection, a tool of the box likewise, and the PSS of mcp-host in bytes."""
    with (
        tempfile.TemporaryDirectory(prefix="abx-", dir="/var/tmp") as folder,
        McpBox(Path(folder), _MANIFEST) as box,
        httpx.Client(trust_env=False) as client,
    ):
        token = box.token("user")
        headers, url = {"Authorization": f"Bearer {token}"}, f"http://127.0.0.1:{box.port}/mcp"

        def call(name: str, expected: str) -> None:
            answer = client.post(url, json=_request(name), headers=headers)
            assert expected in answer.text, answer.text

        box.tool_names(token)
        ours = milliseconds(lambda: call("calc__add", '"sum"'), runs)
        own = milliseconds(lambda: call("skill_list", "skills"), runs)
        assert box.host.process is not None
        rollup = Path(f"/proc/{box.host.process.pid}/smaps_rollup").read_text()
    pss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return ours, own, pss << 10


def _request(tool: str) -> dict[str, Any]:
    arguments = {"a": 1, "b": 2} if tool.endswith("add") else {}
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    ours, own, pss = boxed(options.runs)
    program = bare(options.runs)
    claims = [
        Claim("MCP call through the box", "ms", ours, None, "kept connection; p50/p95 <= 3/8 ms above the bare program", peer="bare MCP program"),
        Claim("bare MCP program", "ms", program, None, "the same program on a pipe"),
        Claim("tool of the box over MCP", "ms", own, None, "skill_list on the same connection"),
        Claim("memory of mcp-host", "MiB", [pss / (1 << 20)], 45.0, "PSS with one server, at the end"),
    ]  # fmt: skip
    write_results("mcp_servers", claims)


if __name__ == "__main__":
    run_main(main)
