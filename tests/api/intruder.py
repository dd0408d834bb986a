"""What one run tries in order to find data of another run: every method of the agent API, over
JSON-RPC and MCP, and its files."""

from collections.abc import Mapping
from typing import Any, Final

Params = Mapping[str, Any]

COMMON: Final = """
import json, os, sys, time, urllib.request
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def post(path, message):
    head = {"Authorization": "Bearer " + os.environ["AGENTBOX_TOKEN"], "Content-Type": "application/json"}
    asked = urllib.request.Request(os.environ["AGENTBOX_URL"] + path, json.dumps(message).encode(), head)
    return json.loads(OPENER.open(asked, timeout=20).read())
def rpc(method, params):
    return post("/rpc", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
def tool(method, params):
    params = {"name": method.replace(".", "_"), "arguments": params}
    return post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
given = json.loads(sys.stdin.readline())
"""
VICTIM: Final = (
    COMMON
    + """
word = given["word"]
def call(method, **params):
    answer = rpc(method, params)
    assert "error" not in answer, answer
    return answer["result"]
who = call("hello")
call("memory.store", key="k", value={"note": word}, text="a fact about cheese " + word)
call("pod.write", path="notes/a.txt", content=word)
bead = call("bead.create", title=word, tags=["theirs", "for:python3"], dedup_key="nightly", data={"note": word})
part = call("bead.create", title="part of " + word, parent_id=bead["id"], tags=["theirs"])
lease = call("bead.claim", id=part["id"])["lease_id"]
call("event.append", type="note.left", subject=word, data={"note": word})
for name in ("HOME", "TMPDIR"):
    with open(os.path.join(os.environ[name], "note"), "w") as file:
        file.write(word)
print(json.dumps({"hello": who, "bead": bead["id"], "part": part["id"], "lease": lease, "home": os.environ["HOME"]}), flush=True)
while given["stays"]:
    time.sleep(0.1)
"""
)
INTRUDER: Final = (
    COMMON
    + """
said = {"hello": rpc("hello", {}), "rpc": [], "mcp": [], "files": []}
for method, params in given["calls"]:
    said["rpc"].append([method, rpc(method, params)])
    said["mcp"].append([method, tool(method, params)])
for top in given["folders"] + [os.environ["HOME"], os.environ["TMPDIR"]]:
    for folder, below, names in os.walk(top):
        for name in names:
            try:
                with open(os.path.join(folder, name), errors="replace") as file:
                    said["files"].append([folder, name, file.read(4096)])
            except OSError as error:
                said["files"].append([folder, name, error.strerror])
print(json.dumps(said), flush=True)
"""
)


def attempts(victim: Mapping[str, Any]) -> dict[str, tuple[Params, ...]]:
    """By method: the requests of a caller that knows every id, name, tag and path of a victim, and
    its program's name."""
    who, bead, part = victim["hello"]["agent"], victim["bead"], victim["part"]
    ids, lease = {"id": part}, {"id": part, "lease_id": victim["lease"]}
    own, state = victim["hello"]["own"], str(victim["hello"].get("state", ""))
    pods = tuple(
        {"path": path + "notes/a.txt"}
        for path in ("", own["pods"], "agents/python3/", f"../{state}/")
    )
    folders = tuple(
        {"path": path} for path in ("", "notes/", own["pods"], "agents/python3/", "state/", "../")
    )
    agent = {"id": who["id"]}
    lists: tuple[Params, ...] = (
        {}, {"parent_id": bead}, {"tag": "theirs"}, {"tag": "for:python3"}, {"tag": own["beads"]}, {"tag": ""},
        {"creator": who["principal"]}, {"assignee": who["principal"]}, {"status": "open"}, {"creator": ""}, {"assignee": ""},
    )  # fmt: skip
    return {
        "hello": ({},),
        "tool.list": ({},),
        "skill.list": ({},),
        "skill.read": ({"name": "git-history"},),
        "tool.invoke": ({"name": "memory/list", "arguments": {}}, {"name": "bead/list", "arguments": {"parent_id": bead}}),
        "secret.get": ({"name": "LAB_SECRET"},),
        "approval.request": ({"kind": "tool", "value": "memory/search", "parameters": {}, "reason": "please"},),
        "identity.sign": ({},),
        "bead.create": ({"title": "x", "parent_id": bead}, {"title": "x", "dedup_key": "nightly"}),
        "bead.show": (ids, {"id": bead}),
        "bead.list": lists,
        "bead.ready": ({}, {"parent_id": bead}),
        "bead.claim": ({"id": bead}, {"id": part}, lease),
        "bead.claim_next": ({}, {"parent_id": bead}, {"tags": ["theirs"]}, {"tags": ["for:python3"]}),
        "bead.heartbeat": (lease,),
        "bead.release": (lease,),
        "bead.close": (lease, {"id": bead, "outcome": "done"}),
        "bead.add_dep": ({"id": bead, "blocker": part}, {"id": part, "blocker": bead}),
        "bead.remove_dep": ({"id": bead, "blocker": part},),
        "pod.write": tuple({**one, "content": "another's"} for one in pods),
        "pod.read": tuple(one for one in pods if one["path"] != "notes/a.txt"),
        "pod.list": folders,
        "pod.delete": pods,
        "memory.store": ({"key": "k", "value": "another's"},),
        "memory.delete": ({"key": "k"},),
        "memory.retrieve": ({"key": "k"},),
        "memory.list": ({}, {"prefix": "k"}),
        "memory.search": ({"query": "a fact about cheese"}, {"query": "cheese", "mode": "text"}, {"query": "note", "mode": "vector"}),
        "event.append": ({"type": "note.left", "data": {}},),
        "event.read": ({}, {"since": 0, "limit": 500}, {"types": "note.left"}),
        "agent.spawn": ({"name": who["name"]}, {"name": "python3"}),
        "agent.list": ({}, {"name": who["name"]}),
        "agent.status": (agent,),
        "agent.terminate": (agent,),
        "agent.send": ({**agent, "text": "x"},),
        "agent.recv": (agent,),
    }  # fmt: skip
