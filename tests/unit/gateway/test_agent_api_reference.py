"""docs/agent-api.md: fresh, complete, and its commands print what it shows."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from reference.agent_api import COMMAND, EXAMPLES, SELF_METHODS, TARGET, page
from support.gateway_fixture import GatewayFixture

from agentbox.gateway.agent_api.hello import METHODS
from agentbox.gateway.agent_api.tools import AGENT_TOOLS, TOOLS


def test_the_page_is_fresh() -> None:
    """The committed copy equals the tables."""
    assert TARGET.read_text() == page(), f"stale; run `{COMMAND}`"


def test_every_method_is_on_the_page() -> None:
    """Each that `hello` lists, once; none that it does not."""
    assert {*SELF_METHODS, *(tool.method for tool in (*TOOLS, *AGENT_TOOLS))} == set(METHODS)
    assert re.findall(r"^\| `([a-z]+[.a-z_]*)` \|", page(), re.MULTILINE) == list(METHODS)


@pytest.mark.parametrize("tool", [*TOOLS, *AGENT_TOOLS], ids=lambda tool: tool.name)
def test_a_tool_is_described(tool) -> None:  # type: ignore[no-untyped-def]
    """Its summary is a sentence, and its required arguments are arguments."""
    assert tool.summary.endswith(".")
    assert {*tool.path, *tool.required} <= set(tool.arguments)


async def test_the_commands_print_what_the_page_says(
    agent_api: GatewayFixture, tmp_path: Path
) -> None:
    """Each in its turn, in a shell, at a real agent API before a real API."""
    program = tmp_path / "agentbox-ctl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -m agentbox.client.ctl "$@"\n')
    program.chmod(0o755)
    env = {
        "AGENTBOX_URL": f"http://127.0.0.1:{agent_api.port}",
        "AGENTBOX_TOKEN": "t1",
        "PATH": f"{tmp_path}:/usr/bin:/bin",
    }
    for line, output in EXAMPLES:
        shell = await asyncio.create_subprocess_shell(line, env=env, stdout=asyncio.subprocess.PIPE)
        out, _ = await shell.communicate()
        expected = ".*".join(map(re.escape, output.split("…")))
        assert re.fullmatch(expected, out.decode().strip()), f"{line}\n{out.decode()}"
        assert shell.returncode == (0 if output.startswith('{"ok": true') else 1), line
