"""Which tools of a server are offered, as which pinned text, and why others are not."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.contracts.mcp import McpTool, ToolState
from agentbox.mcphost.config import McpConfig
from agentbox.mcphost.connection import MAX_TOOLS, LiveTool
from agentbox.mcphost.definitions import find_problem
from agentbox.mcphost.store import McpStore
from agentbox.policy.patterns import globs


class ToolCatalogue:
    """`config` may be replaced. `live` has what each server listed last, by server."""

    def __init__(self, config: McpConfig, store: McpStore) -> None:
        self.config, self._store = config, store
        self.live: dict[str, Mapping[str, LiveTool]] = {}

    async def learn(self, server: str, tools: Mapping[str, LiveTool]) -> None:
        """Takes the listing of a server: new tools are pinned at first use if the row says so, and
        the texts of pinned ones are kept."""
        self.live[server] = tools
        usable = [tool for tool in tools.values() if not self._problem(server, tool)]
        pins = self.pins(server)
        if self.config.servers[server].pin == "first-use":
            new = {
                tool.definition["name"]: tool.digest
                for tool in usable
                if tool.definition["name"] not in pins
            }
            if new and len(pins) + len(new) <= MAX_TOOLS:
                await self.pin(server, {**pins, **new})
                return
        texts = {tool.digest: tool.definition for tool in usable}
        await self._store.keep(server, texts, set(pins.values()))

    async def pin(self, server: str, pins: Mapping[str, str]) -> None:
        """Replaces the pins of first use, by tool, and keeps the texts of those that are live."""
        await self._store.replace_pins(server, pins)
        live = self.live.get(server, {}).values()
        texts = {tool.digest: tool.definition for tool in live}
        await self._store.keep(server, texts, set(pins.values()))

    def pins(self, server: str) -> Mapping[str, str]:
        """The pinned digests of a server, by tool."""
        if self.config.servers[server].pin == "first-use":
            return self._store.first_use(server)
        prefix = f"{server}/"
        return {
            name.removeprefix(prefix): digest
            for name, digest in self.config.locked.items()
            if name.startswith(prefix)
        }

    def is_selected(self, server: str, tool: str) -> bool:
        """Whether `tools` of the row names it."""
        return any(globs.matches(glob, tool) for glob in self.config.servers[server].tools)

    def offered(self, server: str) -> list[Mapping[str, Any]]:
        """The pinned definitions that agents are shown, by name: those of tools that were not seen
        to differ."""
        return [row.definition for row in self.rows(server) if row.state == "offered"]

    def is_known(self, server: str) -> bool:
        """Whether the text of each pinned tool is known, so that the server need not be asked."""
        pins = self.pins(server)
        return server in self.live or (
            bool(pins)
            and all(
                self._store.definition(server, digest) is not None
                for tool, digest in pins.items()
                if self.is_selected(server, tool)
            )
        )

    def rows(self, server: str) -> list[McpTool]:
        """All tools that are live or pinned, by name."""
        live, pins = self.live.get(server), self.pins(server)
        names = sorted({*pins, *(live or ())})
        return [self._row(server, name, live, pins.get(name, "")) for name in names]

    def drifted(self, server: str) -> Iterator[McpTool]:
        """Pinned tools whose live definition differs, or that are gone."""
        return (row for row in self.rows(server) if row.state == "drift")

    def _row(
        self, server: str, name: str, live: Mapping[str, LiveTool] | None, pinned: str
    ) -> McpTool:
        tool = None if live is None else live.get(name)
        state, detail = self._state(server, name, live, pinned)
        known = self._store.definition(server, pinned) or {}
        definition = known if state == "offered" or tool is None else tool.definition
        return McpTool(
            name=name,
            state=state,
            digest="" if tool is None else tool.digest,
            pinned=pinned,
            definition=definition,
            pinned_definition={} if definition == known else known,
            detail=detail,
        )

    def _state(
        self, server: str, name: str, live: Mapping[str, LiveTool] | None, pinned: str
    ) -> tuple[ToolState, str]:
        tool = None if live is None else live.get(name)
        if not self.is_selected(server, name):
            return "left-out", f"mcp.servers.{server}.tools does not name it"
        if tool is not None and (problem := self._problem(server, tool)):
            return "invalid", problem
        if not pinned:
            return "unpinned", f"agentbox mcp pin {server} shows and pins it"
        if live is not None and (tool is None or tool.digest != pinned):
            gone = "the server no longer has it" if tool is None else "its definition has changed"
            return "drift", f"{gone} since it was pinned"
        if self._store.definition(server, pinned) is None:
            return "drift", "its pinned definition has not been seen yet"
        return "offered", ""

    def _problem(self, server: str, tool: LiveTool) -> str:
        return find_problem(server, tool.definition, self.config.mcp.description)
