"""docs/howto/give-agents-mcp-servers.md, followed literally."""

from pathlib import Path

from followed_page import follow
from support.mcp_box import McpBox
from support.mcp_servers import CALCULATOR

from agentbox.core.paths import CHECKOUT
from agentbox.plan.lockfile.reader import parse_lock

MANIFEST = f"""
[agents.coder]
command = ["/usr/bin/git"]
mcp = ["calc"]
[mcp.servers.calc]
command = ["/usr/bin/python3", "-c", '''{CALCULATOR}''']
"""


def test_the_page_is_true(prefix: Path) -> None:
    """Each line that the page shows is printed, and the lock has what was pinned: digests by server and tool."""
    with McpBox(prefix, MANIFEST) as box:
        (box.paths.workspace / "agentbox.toml").write_text("[meta]\nschema_version = 1\n")
        assert follow(CHECKOUT / "docs/howto/give-agents-mcp-servers.md", box.api) == 5
        tools = {tool.name: tool.digest for tool in box.test("calc").tools}
        lock = parse_lock(box.paths.workspace / "agentbox.lock")
        assert lock.mcp == {f"calc/{name}": digest for name, digest in tools.items()}
        assert lock.debian == parse_lock(CHECKOUT / "agentbox.lock").debian
