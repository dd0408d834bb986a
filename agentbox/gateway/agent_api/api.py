"""Authorizes one call of an agent, and serves it here or through the management API."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from agentbox.box.supervision.secrets import read_secret
from agentbox.gateway.agent_api import errors
from agentbox.gateway.agent_api.approvals_required import is_approval_required
from agentbox.gateway.agent_api.custom_tools import CUSTOM_TOOLS
from agentbox.gateway.agent_api.errors import AgentApiError
from agentbox.gateway.agent_api.hello import hello
from agentbox.gateway.agent_api.management_client import ManagementClient
from agentbox.gateway.agent_api.rate_limit import CallRateLimit
from agentbox.gateway.agent_api.server_tools import FIRST, ServerTools, Turn
from agentbox.gateway.agent_api.skills import SKILL_TOOLS
from agentbox.gateway.agent_api.tool_timeout import with_timeout
from agentbox.gateway.agent_api.tools import BY_AGENT_METHOD, BY_METHOD, BY_NAME, TOOLS, Tool
from agentbox.gateway.authorizer import AccessDenied, Authorizer
from agentbox.gateway.config import GatewayConfig
from agentbox.plan.skill_catalogue import SkillCatalogue
from agentbox.policy.rights.authorization import Authorization
from agentbox.policy.rights.budget_usage import BudgetUsage
from agentbox.policy.rights.mcp import tool_right

Arguments = Mapping[str, Any]
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}


class AgentApi:
    """Serves calls; `close` closes its connections to the management API."""

    def __init__(
        self,
        config: GatewayConfig,
        authorizer: Authorizer,
        usage: Callable[[str], BudgetUsage | None] = lambda _: None,
    ) -> None:
        """`usage` returns the model usage of a name."""
        self.authorizer, self.config, self._usage = authorizer, config, usage
        self.management = ManagementClient(config)
        self.rate_limit = CallRateLimit()
        self.skills = SkillCatalogue(config.paths)
        self.server_tools = ServerTools(config.paths)

    async def close(self) -> None:
        """Idempotent."""
        await self.management.close()
        await self.server_tools.close()

    async def call(self, caller: Authorization, method: str, params: Any) -> Any:
        """Returns the result. Raises AgentApiError; denials are reported first."""
        return await self._guarded(caller, method, lambda: self._call(caller, method, params))

    async def call_server_tool(
        self, caller: Authorization, server: str, tool: str, arguments: Any, turn: Turn = FIRST
    ) -> dict[str, Any]:
        """As `call`, for a tool of an MCP server; returns the server's result, or its questions."""
        name = tool_right(server, tool)
        result: dict[str, Any] = await self._guarded(
            caller, name, lambda: self._run_server_tool(caller, server, tool, arguments, turn)
        )
        return result

    async def _guarded(
        self, caller: Authorization, method: str, work: Callable[[], Awaitable[Any]]
    ) -> Any:
        try:
            if self.authorizer.revocation(caller).done():
                raise AccessDenied("token", "the agent has ended")  # since the message was received
            with self.rate_limit.acquire(caller.agent_id):
                return await work()
        except AccessDenied as denied:
            self.authorizer.report_denial(caller, "agent-api", denied.rule, method)
            raise errors.permission_denied(
                denied.rule, f"cannot call {method}: {denied.reason}"
            ) from denied
        except AgentApiError as error:
            if error.rule:
                self.authorizer.report_denial(caller, "agent-api", error.rule, error.message)
            raise

    async def _call(self, caller: Authorization, method: str, params: Any) -> Any:
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise errors.invalid_params("params must be an object")
        if method == "hello":
            _reject_params(params)
            return hello(caller, self._usage, self.skills)
        if method == "tool.list":
            _reject_params(params)
            return {"tools": self.tools(caller)}
        if method == "tool.invoke":
            return await self._invoke_tool(caller, params)
        if (tool := BY_METHOD.get(method)) is not None:
            return await self.run_tool(caller, tool, params)
        if (tool := BY_AGENT_METHOD.get(method)) is not None:
            return await self._run_agent_tool(caller, tool, params)
        if method == "secret.get":
            return await self._get_secret(caller, params)
        if method == "identity.sign":
            raise AgentApiError(errors.UNSUPPORTED, errors.NO_IDENTITY, code="identity-disabled")
        if method == "approval.request":
            return await self._request_approval(caller, params)
        raise AgentApiError(
            errors.METHOD_NOT_FOUND,
            "unknown method; hello lists all methods",
            code="not-found",
        )

    def tools(self, caller: Authorization) -> list[dict[str, Any]]:
        """The tools that some right of the agent may allow, with schemas. Each call is authorized
        again."""
        return [
            {"name": tool.name, "description": tool.summary, "input_schema": tool.schema}
            for tool in TOOLS
            if _may_be_allowed(caller, tool)
        ]

    async def run_tool(self, caller: Authorization, tool: Tool, arguments: Arguments) -> Any:
        """A slot method, under the scope `tool`."""
        _check_arguments(tool, arguments)
        await self._authorize_tool(caller, tool.name, arguments)
        return await with_timeout(caller, tool.name, self._execute(caller, tool, arguments))

    async def _run_server_tool(
        self, caller: Authorization, server: str, tool: str, arguments: Any, turn: Turn
    ) -> dict[str, Any]:
        if not isinstance(arguments, dict):
            raise errors.invalid_params("arguments must be an object")
        name = tool_right(server, tool)
        if server not in caller.mcp:
            raise errors.permission_denied(
                "tool call", f"cannot call {name[:64]!r}: this agent is not offered that server"
            )
        if turn.state:  # the same call, which was counted and approved
            await self.authorizer.check(caller, "tool", "call", name, consume=False)
        else:
            await self._authorize_tool(caller, name, arguments)
        self.server_tools.watch_end(caller, lambda: self.authorizer.revocation(caller))
        work = self.server_tools.call(caller, server, tool, arguments, turn)
        result: dict[str, Any] = await with_timeout(caller, name, work)
        return result

    async def _authorize_tool(self, caller: Authorization, name: str, arguments: Arguments) -> None:
        """Raises AccessDenied."""
        if is_approval_required(caller, "tool", name):
            await self.authorizer.check(
                caller, "tool", "call", name, consume=False
            )  # no approval is requested for a denied call
            await self.authorizer.approve(caller, "tool", name, arguments)
        await self.authorizer.check(caller, "tool", "call", name)

    async def _invoke_tool(self, caller: Authorization, params: Arguments) -> Any:
        name, arguments = params.get("name"), params.get("arguments", {})
        tool = BY_NAME.get(name) if isinstance(name, str) else None
        if tool is None or not isinstance(arguments, dict) or set(params) - {"name", "arguments"}:
            raise errors.invalid_params(
                "tool.invoke requires name, a tool from tool.list, and arguments, an object"
            )
        return await self.run_tool(caller, tool, arguments)

    async def _run_agent_tool(self, caller: Authorization, tool: Tool, arguments: Arguments) -> Any:
        """`spawn` is authorized by the agent to start; messages and termination by the agent they
        address."""
        _check_arguments(tool, arguments)
        if tool.custom == "spawn":
            if arguments["name"] not in caller.children:
                raise errors.permission_denied(
                    "agent spawn",
                    f"cannot start {arguments['name'][:64]!r}: it is not among this agent's "
                    "children in the manifest",
                )
            if is_approval_required(caller, "spawn", arguments["name"]):
                await self.authorizer.check(
                    caller, "agent", "spawn", arguments["name"], consume=False
                )
                await self.authorizer.approve(caller, "spawn", arguments["name"], arguments)
            await self.authorizer.check(caller, "agent", "spawn", arguments["name"])
        elif tool.custom in ("send", "recv", "terminate"):
            info = await with_timeout(
                caller,
                tool.name,
                self.management.call(caller, "get_agent", {"id": arguments["id"]}),
            )
            operation = "signal" if tool.custom == "terminate" else "message"
            await self.authorizer.check(caller, "agent", operation, info["spec"]["agent"])
        return await with_timeout(caller, tool.name, self._execute(caller, tool, arguments))

    async def _execute(self, caller: Authorization, tool: Tool, arguments: Arguments) -> Any:
        if tool.custom in SKILL_TOOLS:
            return SKILL_TOOLS[tool.custom](self.skills, caller, arguments)
        if tool.custom:
            return await CUSTOM_TOOLS[tool.custom](self.management, caller, tool, arguments)
        path = {name: str(arguments[name]) for name in tool.path}
        query = {name: arguments[name] for name in tool.query if name in arguments}
        body = (
            None
            if tool.body is None
            else {name: arguments[name] for name in tool.body if name in arguments}
        )
        namespace = f"state.{caller.state}"
        if tool.name.startswith("memory/"):
            path, body = _in_namespace(tool, namespace, path, body)
        return await self.management.call(caller, tool.route, path, query=query, body=body)

    async def _request_approval(self, caller: Authorization, params: Arguments) -> Any:
        """Requests an approval in advance, with a reason; valid for one use of exactly this action
        within two minutes."""
        kind, value, reason = (params.get(name, "") for name in ("kind", "value", "reason"))
        parameters = params.get("parameters", {})
        are_texts = all(isinstance(text, str) for text in (kind, value, reason))
        if (
            set(params) - {"kind", "value", "parameters", "reason"}
            or not are_texts
            or not isinstance(parameters, dict)
        ):
            raise errors.invalid_params(
                "approval.request requires kind, value and reason, all strings, and "
                "parameters, an object"
            )
        if not is_approval_required(caller, kind, value):
            raise errors.invalid_params(
                "this action does not require an approval; hello lists those that do"
            )
        await self.authorizer.approve(caller, kind, value, parameters, reason, for_next_use=True)
        return {"approved": True}

    async def _get_secret(self, caller: Authorization, params: Arguments) -> Any:
        name = params.get("name")
        if set(params) != {"name"} or not isinstance(name, str):
            raise errors.invalid_params("secret.get requires the name of a secret")
        if name not in caller.secrets:
            raise errors.permission_denied(
                "secret", "cannot return this secret: the manifest does not grant it to this agent"
            )
        secret = read_secret(self.config.paths, name)
        if secret is None:
            raise AgentApiError(
                errors.FAILED,
                "cannot return this secret: it has no value in this box",
                code="not-found",
            )
        await self.authorizer.check(caller, "env", "read", name)
        return {"name": name, "value": secret[0]}


def _in_namespace(
    tool: Tool, namespace: str, path: dict[str, str], body: Any
) -> tuple[dict[str, str], Any]:
    if tool.route == "search_memory":
        return path, {**body, "namespaces": [namespace]}
    return {**path, "ns": namespace}, body


def _check_arguments(tool: Tool, arguments: Arguments) -> None:
    """Checks names and types; the API validates the values. Raises AgentApiError."""
    schemas = tool.arguments
    if unknown := sorted(set(arguments) - set(schemas)):
        raise errors.invalid_params(f"unexpected argument {unknown[0][:64]!r} of {tool.name}")
    for name in (*tool.path, *tool.required):
        if name not in arguments:
            raise errors.invalid_params(f"{tool.name} requires the argument {name}")
    for name, value in arguments.items():
        types = _TYPES.get(str(schemas[name].get("type", "")))
        if types is not None and (not isinstance(value, types) or isinstance(value, bool)):
            raise errors.invalid_params(
                f"the argument {name} of {tool.name} must be of type {schemas[name]['type']}"
            )


def _reject_params(params: Arguments) -> None:
    if params:
        raise errors.invalid_params("this method takes no params")


def _may_be_allowed(caller: Authorization, tool: Tool) -> bool:
    from agentbox.policy.rights.rights import find_allowing_right

    return all(
        find_allowing_right(rights, "tool", "call", tool.name)
        for rights in (caller.rights, *(ancestor.rights for ancestor in caller.ancestors))
    )
