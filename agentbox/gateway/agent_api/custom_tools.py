"""Tools whose arguments do not map to a single route."""

import base64
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from agentbox.core.errors import AgentboxError
from agentbox.gateway.agent_api.errors import FAILED, AgentApiError, invalid_params
from agentbox.gateway.agent_api.management_client import (
    ManagementClient,
    on_behalf_headers,
    to_agent_api_error,
)
from agentbox.gateway.agent_api.tools import Tool
from agentbox.policy.rights.authorization import Authorization

Arguments = Mapping[str, Any]
CustomTool = Callable[[ManagementClient, Authorization, Tool, Arguments], Awaitable[Any]]
_DEFAULT_ITEMS: Final = 100  # output items per response, unless `limit` is given


async def create_bead(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Creates a bead below `parent_id`, otherwise an epic."""
    body = {name: value for name, value in arguments.items() if name != "parent_id"}
    if (parent := arguments.get("parent_id")) is None:
        return await management.call(caller, "create_epic", body=body)
    return await management.call(caller, "create_child", {"id": parent}, body=body)


async def claim_lease(
    management: ManagementClient, caller: Authorization, tool: Tool, arguments: Arguments
) -> Any:
    """Generates a lease id if none is given; the response contains it."""
    body = {name: value for name, value in arguments.items() if name not in tool.path}
    body.setdefault("lease_id", str(uuid.uuid4()))
    return await management.call(
        caller, tool.route, {name: arguments[name] for name in tool.path}, body=body
    )


async def append_event(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Appends one event."""
    return await management.call(
        caller, "append_events", body={"events": [{"data": {}, **arguments}]}
    )


async def write_pod(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Requires exactly one of `content` and `content_base64`."""
    if ("content" in arguments) == ("content_base64" in arguments):
        raise invalid_params("set exactly one of content and content_base64")
    try:
        body = (
            arguments["content"].encode()
            if "content" in arguments
            else base64.b64decode(arguments["content_base64"], validate=True)
        )
    except ValueError as error:  # a lone surrogate, or invalid base64
        raise invalid_params(f"cannot decode the content: {error}") from error
    content_type = arguments.get("content_type") or (
        "text/plain; charset=utf-8" if "content" in arguments else "application/octet-stream"
    )
    conditions = {
        "If-Match": arguments.get("if_match"),
        "If-None-Match": arguments.get("if_none_match"),
    }
    headers = {
        "Content-Type": content_type,
        **{name: value for name, value in conditions.items() if value},
    }
    response = await _send_pod_call(
        management, caller, "write_pod", _pod_path(caller, arguments), content=body, headers=headers
    )
    return {"created": response.status_code == 201, "etag": response.headers.get("etag")}


async def read_pod(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Returns text as text. Raises AgentApiError if the object exceeds the message limit."""
    from agentbox.client.transport import build_call

    max_bytes = int(caller.limits["frame"])
    try:
        call = build_call(
            "read_pod",
            {"path": _pod_path(caller, arguments)},
            headers={"Accept": "*/*", **on_behalf_headers(caller)},
        )
        async with management.client.streaming(call) as response:
            body, headers = bytearray(), response.headers
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > max_bytes:
                    raise AgentApiError(
                        FAILED,
                        f"cannot return an object larger than {max_bytes} bytes (limits.frame)",
                        "value-too-large",
                    )
    except (AgentboxError, ValueError) as error:
        raise to_agent_api_error(error) from error
    metadata = {"content_type": headers.get("content-type", ""), "etag": headers.get("etag")}
    try:
        return {"content": body.decode(), **metadata}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(body).decode(), **metadata}


async def list_pods(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Lists the members of a container as JSON."""
    page = {name: arguments[name] for name in ("limit", "cursor") if name in arguments}
    response = await _send_pod_call(
        management,
        caller,
        "read_pod",
        _pod_path(caller, arguments, container=True),
        query=page,
        headers={"Accept": "application/json"},
    )
    return response.json()


async def delete_pod(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Deletes an object; returns None."""
    headers = {"If-Match": arguments["if_match"]} if "if_match" in arguments else {}
    await _send_pod_call(
        management,
        caller,
        "delete_pod",
        _pod_path(caller, arguments),
        headers={"Accept": "*/*", **headers},
    )
    return None


async def spawn(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Starts an agent as defined in the manifest."""
    body = {**arguments, "agent": arguments["name"]}
    if "input" in body:
        body["input"] = base64.b64encode(_encode(body["input"])).decode()
    return await management.call(caller, "spawn", body=body)


async def terminate(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Terminates the current generation."""
    query = {
        "generation": await _current_generation(management, caller, arguments["id"]),
        "grace_s": arguments.get("grace_s"),
    }
    return await management.call(caller, "terminate_agent", {"id": arguments["id"]}, query=query)


async def send(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Attaches for the duration of the write."""
    data = _encode(arguments["text"])
    generation = await _current_generation(management, caller, arguments["id"])
    try:
        attached = await management.attach(caller, arguments["id"], generation)
        try:
            await attached.send(data)
        finally:
            await attached.aclose()
    except AgentboxError as error:
        raise to_agent_api_error(error) from error
    return {"sent": len(data)}


async def recv(
    management: ManagementClient, caller: Authorization, _tool: Tool, arguments: Arguments
) -> Any:
    """Returns available output without waiting. Continue at the returned `since`."""
    from agentbox.client.transport import build_call
    from agentbox.core.http.sse_parser import SseParser

    since, max_items = int(arguments.get("since", 0)), int(arguments.get("limit", _DEFAULT_ITEMS))
    items: list[Any] = []
    try:
        query = {"since": since, "follow": "false"}
        call = build_call(
            "stream_agent", {"id": arguments["id"]}, query=query, headers=on_behalf_headers(caller)
        )
        async with management.client.streaming(call) as response:
            parser = SseParser()
            async for chunk in response.aiter_bytes():
                for event in parser.feed(chunk)[: max_items - len(items)]:
                    since = int(event.id or since)
                    items.append(json.loads(event.data))
                if len(items) >= max_items:
                    break
    except (AgentboxError, ValueError) as error:
        raise to_agent_api_error(error) from error
    return {"items": items, "since": since}


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise invalid_params(f"cannot encode the text: {error.reason}") from error


async def _current_generation(
    management: ManagementClient, caller: Authorization, agent_id: str
) -> int:
    info = await management.call(caller, "get_agent", {"id": agent_id})
    return int(info["handle"]["generation"])


async def _send_pod_call(
    management: ManagementClient,
    caller: Authorization,
    route: str,
    path: str,
    *,
    headers: Mapping[str, str],
    query: Any = None,
    content: Any = None,
) -> Any:
    from agentbox.client.transport import build_call

    try:
        call = build_call(
            route,
            {"path": path},
            query=query,
            headers={**headers, **on_behalf_headers(caller)},
            content=content,
        )
        return await management.client.send(call)
    except (AgentboxError, ValueError) as error:
        raise to_agent_api_error(error) from error


def _pod_path(caller: Authorization, arguments: Arguments, *, container: bool = False) -> str:
    """Prefixes a path with the container of the agent's state, if missing."""
    prefix, path = f"state/{caller.state}/", str(arguments.get("path", ""))
    if not path and not container:
        raise invalid_params("path must not be empty")
    return path if path.startswith(prefix) else prefix + path


CUSTOM_TOOLS: Final[Mapping[str, CustomTool]] = {
    "create_bead": create_bead,
    "lease": claim_lease,
    "append_event": append_event,
    "write_pod": write_pod,
    "read_pod": read_pod,
    "list_pods": list_pods,
    "delete_pod": delete_pod,
    "spawn": spawn,
    "terminate": terminate,
    "send": send,
    "recv": recv,
}
