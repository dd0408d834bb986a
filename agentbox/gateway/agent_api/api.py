"""One call of an agent: judged by its rights, then answered here or by the box's API."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from agentbox.box.supervision.secrets import read_secret
from agentbox.gateway.agent_api import errors
from agentbox.gateway.agent_api.approvals_required import waits
from agentbox.gateway.agent_api.box_api import BoxApi
from agentbox.gateway.agent_api.custom_tools import SPECIALS
from agentbox.gateway.agent_api.errors import DoorError
from agentbox.gateway.agent_api.floods import Floods
from agentbox.gateway.agent_api.hello import hello
from agentbox.gateway.agent_api.tools import BY_AGENT_METHOD, BY_METHOD, BY_NAME, TOOLS, Tool
from agentbox.gateway.authorizer import Authority, Refused
from agentbox.gateway.config import GatewayConfig
from agentbox.policy.rights.spent import Spent
from agentbox.policy.rights.standing import Standing

Arguments = Mapping[str, Any]
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "object": (dict,), "array": (list,),
}  # fmt: skip


TOOL_SECONDS: Final = 30  # of one call of a tool, unless the agent's `limits.tool_timeout_seconds` says another number


class Door:
    """Answers calls; `close` ends its connections to the API."""

    def __init__(
        self, config: GatewayConfig, authority: Authority, spent: Callable[[str], Spent | None] = lambda _: None
    ) -> None:
        """`spent`: what a name has used of models."""
        self.authority, self.config, self._spent = authority, config, spent
        self.api = BoxApi(config)
        self.floods = Floods()

    async def close(self) -> None:
        """Idempotent."""
        await self.api.close()

    async def call(self, who: Standing, method: str, given: Any) -> Any:
        """The result. Raises DoorError; a refusal is counted before that."""
        try:
            if self.authority.revoked(who).done():
                raise Refused("token", "the agent has ended")  # since the message came that this call is of
            with self.floods.room(who.agent_id):
                return await self._call(who, method, given)
        except Refused as refused:
            self.authority.denied(who, "door", refused.rule, method)
            raise errors.denied(refused.rule, f"cannot call {method}: {refused.reason}") from refused
        except DoorError as error:
            if error.rule:
                self.authority.denied(who, "door", error.rule, error.message)
            raise

    async def _call(self, who: Standing, method: str, given: Any) -> Any:
        if given is None:
            given = {}
        if not isinstance(given, dict):
            raise errors.params("params must be an object")
        if method == "hello":
            _none(given)
            return hello(who, self._spent)
        if method == "tool.list":
            _none(given)
            return {"tools": self.tools(who)}
        if method == "tool.invoke":
            return await self._invoke(who, given)
        if (tool := BY_METHOD.get(method)) is not None:
            return await self.run(who, tool, given)
        if (tool := BY_AGENT_METHOD.get(method)) is not None:
            return await self._agents(who, tool, given)
        if method == "secret.get":
            return await self._secret(who, given)
        if method == "identity.sign":
            raise DoorError(errors.NOT_YET, errors.NO_IDENTITY, code="identity-disabled")
        if method == "approval.request":
            return await self._request(who, given)
        raise DoorError(errors.UNKNOWN, "there is no such method; hello lists them all", code="not-found")

    def tools(self, who: Standing) -> list[dict[str, Any]]:
        """Those that some right of the agent may allow, with their schemas. A call is judged anew."""
        return [
            {"name": tool.name, "description": tool.summary, "input_schema": tool.schema} for tool in TOOLS if _held(who, tool)
        ]  # fmt: skip

    async def run(self, who: Standing, tool: Tool, given: Arguments) -> Any:
        """A slot method, under the scope `tool`."""
        _fits(tool, given)
        if waits(who, "tool", tool.name):
            await self.authority.check(
                who, "tool", "call", tool.name, take=False
            )  # nobody is asked for what is refused
            await self.authority.approve(who, "tool", tool.name, given)
        await self.authority.check(who, "tool", "call", tool.name)
        return await _within(who, tool, self._do(who, tool, given))

    async def _invoke(self, who: Standing, given: Arguments) -> Any:
        name, arguments = given.get("name"), given.get("arguments", {})
        tool = BY_NAME.get(name) if isinstance(name, str) else None
        if tool is None or not isinstance(arguments, dict) or set(given) - {"name", "arguments"}:
            raise errors.params("tool.invoke takes the name of a tool that tool.list shows, and arguments, an object")
        return await self.run(who, tool, arguments)

    async def _agents(self, who: Standing, tool: Tool, given: Arguments) -> Any:
        """`spawn` by the name of what is started; messages and ends by the name of what was started before."""
        _fits(tool, given)
        if tool.special == "spawn":
            if given["name"] not in who.children:
                raise errors.denied(
                    "agent spawn",
                    f"cannot start {given['name'][:64]!r}: the manifest does not name it in this agent's children",
                )
            if waits(who, "spawn", given["name"]):
                await self.authority.check(who, "agent", "spawn", given["name"], take=False)
                await self.authority.approve(who, "spawn", given["name"], given)
            await self.authority.check(who, "agent", "spawn", given["name"])
        elif tool.special in ("send", "recv", "terminate"):
            info = await _within(who, tool, self.api.call(who, "get_agent", {"id": given["id"]}))
            operation = "signal" if tool.special == "terminate" else "message"
            await self.authority.check(who, "agent", operation, info["spec"]["agent"])
        return await _within(who, tool, self._do(who, tool, given))

    async def _do(self, who: Standing, tool: Tool, given: Arguments) -> Any:
        if tool.special:
            return await SPECIALS[tool.special](self.api, who, tool, given)
        path = {name: str(given[name]) for name in tool.path}
        query = {name: given[name] for name in tool.query if name in given}
        body = None if tool.body is None else {name: given[name] for name in tool.body if name in given}
        own = f"state.{who.state}"
        if tool.name.startswith("memory/"):
            path, body = _in_namespace(tool, own, path, body)
        return await self.api.call(who, tool.route, path, query=query, body=body)

    async def _request(self, who: Standing, given: Arguments) -> Any:
        """Asks ahead, with words for the person who decides; good for one use of exactly that action, for two minutes."""
        kind, value, reason = (given.get(name, "") for name in ("kind", "value", "reason"))
        parameters = given.get("parameters", {})
        texts = all(isinstance(one, str) for one in (kind, value, reason))
        if set(given) - {"kind", "value", "parameters", "reason"} or not texts or not isinstance(parameters, dict):
            raise errors.params("approval.request takes kind, value and reason, texts, and parameters, an object")
        if not waits(who, kind, value):
            raise errors.params("no such action of this agent waits for an approval; hello lists them")
        await self.authority.approve(who, kind, value, parameters, reason, hold=True)
        return {"approved": True}

    async def _secret(self, who: Standing, given: Arguments) -> Any:
        name = given.get("name")
        if set(given) != {"name"} or not isinstance(name, str):
            raise errors.params("secret.get takes the name of a secret")
        if name not in who.secrets:
            raise errors.denied("secret", "cannot show this secret: the manifest does not give it to this agent")
        found = read_secret(self.config.paths, name)
        if found is None:
            raise DoorError(errors.FAILED, "cannot show this secret: it has no value in this box", code="not-found")
        await self.authority.check(who, "env", "read", name)
        return {"name": name, "value": found[0]}


async def _within(who: Standing, tool: Tool, work: Awaitable[Any]) -> Any:
    """Work for a call, in the agent's time for one; approvals were waited for before it. Raises DoorError."""
    seconds, key = float(who.limits.get("tool_timeout_seconds", TOOL_SECONDS)), "limits.tool_timeout_seconds"
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        raise DoorError(
            errors.FAILED, f"cannot finish {tool.name}: it took longer than {seconds:g} s ({key})", "tool-timeout",
            limit="tool_timeout_seconds", cap=seconds, config_path=key,
        ) from error  # fmt: skip


def _in_namespace(tool: Tool, own: str, path: dict[str, str], body: Any) -> tuple[dict[str, str], Any]:
    if tool.route == "search_memory":
        return path, {**body, "namespaces": [own]}
    return {**path, "ns": own}, body


def _fits(tool: Tool, given: Arguments) -> None:
    """Names and kinds; what a value may be beyond that the API says. Raises DoorError."""
    known = tool.arguments
    if unknown := sorted(set(given) - set(known)):
        raise errors.params(f"{tool.name} takes no argument {unknown[0][:64]!r}")
    for name in (*tool.path, *tool.required):
        if name not in given:
            raise errors.params(f"{tool.name} needs the argument {name}")
    for name, value in given.items():
        kinds = _KINDS.get(str(known[name].get("type", "")))
        if kinds is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise errors.params(f"the argument {name} of {tool.name} must be of type {known[name]['type']}")


def _none(given: Arguments) -> None:
    if given:
        raise errors.params("this method takes no params")


def _held(who: Standing, tool: Tool) -> bool:
    from agentbox.policy.rights.rights import allowing

    return all(
        allowing(rights, "tool", "call", tool.name) for rights in (who.rights, *(one.rights for one in who.ancestors))
    )
