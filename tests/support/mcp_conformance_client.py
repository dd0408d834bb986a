"""The client that the conformance suite starts: an agent's calls of all tools of one MCP server.

    python mcp_conformance_client.py ADDRESS_OF_THE_SUITE

Its environment names the gateway, the agent's token and the forwarder.
"""

import json
import sys
import urllib.request
from typing import Any

from agentbox.core.paths import environment

NUMBERS = {"a": 5, "b": 3}


def send(method: str, url: str, body: bytes, **headers: str) -> bytes:
    """The body of the answer. Raises HTTPError."""
    request = urllib.request.Request(url, body, headers, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        found: bytes = answer.read()
    return found


def ask(url: str, method: str, **params: Any) -> Any:
    """The result, or the error, of one call of the agent."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    token = environment()["AGENT_TOKEN"]
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    answer = json.loads(send("POST", url, json.dumps(message).encode(), **headers))
    return answer.get("result", answer.get("error"))


def main(suite: str) -> None:
    """Lists the tools of the server and calls each."""
    scenario = environment()["MCP_CONFORMANCE_SCENARIO"].replace("_", "-")
    send("PUT", f"{environment()['FORWARDER']}/{scenario}", suite.encode())
    gateway = f"{environment()['GATEWAY']}/mcp/{scenario}"
    tools = ask(gateway, "tools/list")["tools"]
    wanted = json.loads(environment().get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls", ())
    arguments = {call["name"]: call["arguments"] for call in wanted}
    for tool in tools:
        name, properties = tool["name"], tool["inputSchema"].get("properties", {})
        given = arguments.get(name) or {key: NUMBERS[key] for key in NUMBERS if key in properties}
        if "schema" in properties:  # the schema of another tool, as this client has it
            given = {"schema": tools[0 if tools[0]["name"] != name else 1]["inputSchema"]}
        print(name, json.dumps(ask(gateway, "tools/call", name=name, arguments=given))[:300])
    send("DELETE", f"{environment()['FORWARDER']}/", b"")


if __name__ == "__main__":
    main(sys.argv[1])
