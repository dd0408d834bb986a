"""Calls whose arguments are not those of one route."""

import base64
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from agentbox.core.errors import AgentboxError
from agentbox.gateway.agent_api.box_api import BoxApi, on_behalf, told
from agentbox.gateway.agent_api.errors import FAILED, DoorError, params
from agentbox.gateway.agent_api.tools import Tool
from agentbox.policy.rights.standing import Standing

Arguments = Mapping[str, Any]
Special = Callable[[BoxApi, Standing, Tool, Arguments], Awaitable[Any]]
FRAME: Final = 1 << 20  # bytes of a message, unless the agent's `limits.frame` says another number
_CHUNKS: Final = 100  # of output in one answer, unless `limit` says another number


async def create_bead(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """Below `parent_id`, else an epic."""
    body = {name: value for name, value in given.items() if name != "parent_id"}
    if (parent := given.get("parent_id")) is None:
        return await api.call(who, "create_epic", body=body)
    return await api.call(who, "create_child", {"id": parent}, body=body)


async def lease(api: BoxApi, who: Standing, tool: Tool, given: Arguments) -> Any:
    """A lease id is made here where none was given; the answer has it."""
    body = {name: value for name, value in given.items() if name not in tool.path}
    body.setdefault("lease_id", str(uuid.uuid4()))
    return await api.call(who, tool.route, {name: given[name] for name in tool.path}, body=body)


async def append_event(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """One event."""
    return await api.call(who, "append_events", body={"events": [{"data": {}, **given}]})


async def write_pod(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """Exactly one of `content` and `content_base64`."""
    if ("content" in given) == ("content_base64" in given):
        raise params("exactly one of content and content_base64 must be given")
    try:
        body = (
            given["content"].encode()
            if "content" in given
            else base64.b64decode(given["content_base64"], validate=True)
        )
    except ValueError as error:  # half of a surrogate pair, or no base64
        raise params(f"the content cannot be read: {error}") from error
    kind = given.get("content_type") or (
        "text/plain; charset=utf-8" if "content" in given else "application/octet-stream"
    )
    conditions = {"If-Match": given.get("if_match"), "If-None-Match": given.get("if_none_match")}
    headers = {"Content-Type": kind, **{name: value for name, value in conditions.items() if value}}
    response = await _send(api, who, "write_pod", _path(who, given), content=body, headers=headers)
    return {"created": response.status_code == 201, "etag": response.headers.get("etag")}


async def read_pod(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """Text as text. Raises DoorError for an object that does not fit into a message."""
    from agentbox.client.transport import call_of

    most = int(who.limits.get("frame") or FRAME)
    try:
        call = call_of("read_pod", {"path": _path(who, given)}, headers={"Accept": "*/*", **on_behalf(who)})
        async with api.client.streaming(call) as response:
            body, headers = bytearray(), response.headers
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > most:
                    raise DoorError(
                        FAILED, f"cannot show an object of more than {most} bytes (limits.frame)", "value-too-large"
                    )
    except (AgentboxError, ValueError) as error:
        raise told(error) from error
    shown = {"content_type": headers.get("content-type", ""), "etag": headers.get("etag")}
    try:
        return {"content": body.decode(), **shown}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(body).decode(), **shown}


async def list_pods(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """The members of a container, as the API's JSON."""
    page = {name: given[name] for name in ("limit", "cursor") if name in given}
    response = await _send(
        api, who, "read_pod", _path(who, given, container=True), query=page, headers={"Accept": "application/json"}
    )
    return response.json()


async def delete_pod(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """Nothing is answered."""
    headers = {"If-Match": given["if_match"]} if "if_match" in given else {}
    await _send(api, who, "delete_pod", _path(who, given), headers={"Accept": "*/*", **headers})
    return None


async def spawn(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """What the manifest says of it stands."""
    body = {**given, "agent": given["name"]}
    if "input" in body:
        body["input"] = base64.b64encode(_encoded(body["input"])).decode()
    return await api.call(who, "spawn", body=body)


async def terminate(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """The life that runs now."""
    query = {"generation": await _generation(api, who, given["id"]), "grace_s": given.get("grace_s")}
    return await api.call(who, "terminate_agent", {"id": given["id"]}, query=query)


async def send(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """Held for as long as it takes to write."""
    data = _encoded(given["text"])
    generation = await _generation(api, who, given["id"])
    try:
        attached = await api.attach(who, given["id"], generation)
        try:
            await attached.send(data)
        finally:
            await attached.aclose()
    except AgentboxError as error:
        raise told(error) from error
    return {"sent": len(data)}


async def recv(api: BoxApi, who: Standing, _tool: Tool, given: Arguments) -> Any:
    """What there is, without waiting. `since` of the answer is where to go on."""
    from agentbox.client.transport import call_of
    from agentbox.core.http.sse_parser import SseParser

    since, most = int(given.get("since", 0)), int(given.get("limit", _CHUNKS))
    items: list[Any] = []
    try:
        query = {"since": since, "follow": "false"}
        call = call_of("stream_agent", {"id": given["id"]}, query=query, headers=on_behalf(who))
        async with api.client.streaming(call) as response:
            parser = SseParser()
            async for chunk in response.aiter_bytes():
                for event in parser.feed(chunk)[: most - len(items)]:
                    since = int(event.id or since)
                    items.append(json.loads(event.data))
                if len(items) >= most:
                    break
    except (AgentboxError, ValueError) as error:
        raise told(error) from error
    return {"items": items, "since": since}


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise params(f"the text cannot be sent: {error.reason}") from error


async def _generation(api: BoxApi, who: Standing, agent_id: str) -> int:
    info = await api.call(who, "get_agent", {"id": agent_id})
    return int(info["handle"]["generation"])


async def _send(
    api: BoxApi,
    who: Standing,
    route: str,
    path: str,
    *,
    headers: Mapping[str, str],
    query: Any = None,
    content: Any = None,
) -> Any:
    from agentbox.client.transport import call_of

    try:
        call = call_of(route, {"path": path}, query=query, headers={**headers, **on_behalf(who)}, content=content)
        return await api.client.send(call)
    except (AgentboxError, ValueError) as error:
        raise told(error) from error


def _path(who: Standing, given: Arguments, *, container: bool = False) -> str:
    """An agent's paths begin in the container of its state, whether it writes that or not."""
    own, path = f"state/{who.state}/", str(given.get("path", ""))
    if not path and not container:
        raise params("path must not be empty")
    return path if path.startswith(own) else own + path


SPECIALS: Final[Mapping[str, Special]] = {
    "create_bead": create_bead, "lease": lease, "append_event": append_event, "write_pod": write_pod, "read_pod": read_pod,
    "list_pods": list_pods, "delete_pod": delete_pod, "spawn": spawn, "terminate": terminate, "send": send, "recv": recv,
}  # fmt: skip
