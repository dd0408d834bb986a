"""A box with MCP servers: API, agent-host, gateway and mcp-host, with the servers and agents of a
manifest text.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from agentbox.client.mcp_host import McpHostClient
from agentbox.contracts.mcp import McpServer
from agentbox.core.canonical import canonical_json
from agentbox.core.paths import PREFIX_VARIABLE, environment
from agentbox.mcphost.config import McpConfig
from agentbox.plan.model import Plan
from agentbox.plan.names import MCP_HOST
from support import plans
from support.agent_host import end_with_parent
from support.story_box import StoryBox

_START_SECONDS = 20.0


class McpHostProcess:
    """Runs mcp-host below a directory, confined, as supervisord starts it."""

    def __init__(self, paths: Any) -> None:
        self.paths, self.log = paths, paths.prefix / "mcp-host.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Waits until it is ready. Raises RuntimeError with its log."""
        inherited = {
            name: environment()[name] for name in ("PATH", "HOME") if name in environment()
        }
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-m", "agentbox.box.programs.confined", MCP_HOST),
                    *(sys.executable, "-I", "-m", "agentbox.mcphost"),
                ],
                env={**inherited, PREFIX_VARIABLE: str(self.paths.prefix)},
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_listening():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"mcp-host does not start:\n{self.log.read_text()}")
            time.sleep(0.01)

    def _is_listening(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
            client.connect(str(self.paths.mcp_host_socket))
            return True
        return False

    def kill(self) -> None:
        """Sends SIGKILL, like a crash."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Sends SIGTERM. Raises TimeoutExpired after 15 s."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(15)


class McpBox(StoryBox):
    """A context manager. `manifest` has `[mcp]` tables too; nothing is pinned at first."""

    def __init__(
        self, prefix: Path, manifest: str, secrets: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(prefix, "", manifest, secrets or {})
        parsed = plans.plan_of(manifest)
        programs = tuple(row for row in parsed.programs if row.name == MCP_HOST)
        self.plan = replace(
            self.plan,
            mcp=parsed.mcp,
            programs=programs,
            rulesets={MCP_HOST: parsed.rulesets[MCP_HOST]},
        )
        self.host = McpHostProcess(self.paths)
        self.paths.tmp.mkdir(parents=True, exist_ok=True)
        self._programs = ExitStack()

    def __enter__(self) -> Self:
        self.paths.plan.write_bytes(canonical_json(self.plan.to_json()))
        super().__enter__()
        with ExitStack() as stack:
            stack.callback(super().__exit__, None, None, None)
            self.host.start()
            self._wait_configured()
            stack.callback(self.host.stop)
            self._programs = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._programs.close()

    def _wait_configured(self) -> None:
        """Until mcp-host has its first configuration from the API, which would replace that of
        `apply`. Raises RuntimeError with the log."""
        deadline = time.monotonic() + _START_SECONDS
        while '"configured"' not in self.host.log.read_text():
            if time.monotonic() > deadline:
                raise RuntimeError(f"mcp-host is not configured:\n{self.logs()}")
            time.sleep(0.01)

    def apply(self, plan: Plan) -> None:
        """Puts a plan in force in mcp-host, as the API does for live keys."""
        self.plan = plan
        asyncio.run(self._configure())

    async def _configure(self) -> None:
        client = McpHostClient(self.paths)
        await client.operations.configure(McpConfig.from_plan(self.plan).to_json())
        await client.close()

    def test(self, server: str) -> McpServer:
        """Asks a server for its tools."""
        return self.client.mcp.test_server(server)

    def pin(self, *servers: str) -> None:
        """Pins what the servers have now."""
        pins = {
            f"{name}/{tool.name}": tool.digest
            for name in servers
            for tool in self.test(name).tools
            if tool.digest
        }
        digests = replace(self.plan.digests, mcp={**self.plan.digests.mcp, **pins})
        self.apply(replace(self.plan, digests=digests))

    def token(self, agent: str) -> str:
        """Starts the agent of that table, which prints its token, and returns that."""
        spawned = self.client.agents.spawn({"name": agent, "agent": agent})
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            items = self.client.agents.stream(spawned.agent_id, follow=False)
            out = b"".join(item.data for item in items if item.kind == "stdout")
            if b"\n" in out:
                return out.decode().split()[0]
            time.sleep(0.05)
        raise AssertionError(self.logs())

    def post(self, token: str, method: str, path: str = "/mcp", **params: Any) -> Any:
        """One message of the handshake revisions; the member `result` or `error`."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        url = f"http://127.0.0.1:{self.port}{path}"
        answer = httpx.post(url, json=body, headers=headers, trust_env=False, timeout=60).json()
        return answer.get("result") or answer["error"]

    def call(self, token: str, tool: str, **arguments: Any) -> Any:
        """The result of a call through the gateway."""
        return self.post(token, "tools/call", name=tool, arguments=arguments)

    def tool_names(self, token: str) -> list[str]:
        """The tools of servers that an agent is shown."""
        tools = self.post(token, "tools/list")["tools"]
        return [tool["name"] for tool in tools if "__" in tool["name"]]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The events of that type in the journal."""
        query = {"types": kind, "limit": 500}
        return list(self.client.call("read_events", query=query)["events"])

    def metrics(self) -> str:
        """The text of /metrics."""
        return httpx.get(f"{self.api.metrics_url}/metrics", trust_env=False).text

    def logs(self) -> str:
        """As of `StoryBox`, with that of mcp-host."""
        return f"{super().logs()}\n== mcp-host\n{self.host.log.read_text()}"
