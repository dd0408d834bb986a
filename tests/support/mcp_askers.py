"""MCP servers that ask for input, to be run in a sandbox: one without a library that speaks a revision with a
handshake, one of the official SDK."""

from typing import Final

from support.mcp_servers import _HEAD

ASKER: Final = (
    _HEAD
    + """
import time
names = ("book", "twice", "thousand", "huge", "nested", "address", "hidden", "late", "slow", "heard", "die")
tools = [{"name": name, "description": "Asks.", "inputSchema": schema()} for name in names]
form = {"type": "object", "properties": {"day": {"type": "string", "title": "Day"}}, "required": ["day"]}
heard, asked = [], [0]
def ask(requested=form, message="Which day?", **more):
    asked[0] += 1
    send({"id": "ask-" + str(asked[0]), "method": "elicitation/create",
          "params": {"message": message, "requestedSchema": requested, **more}})
def answer():
    while True:
        message = json.loads(sys.stdin.readline())
        if "method" not in message:
            heard.append(message.get("result", message.get("error")))
            return heard[-1]
        heard.append(message["method"])
def call(name, arguments):
    if name == "heard":
        return text(json.dumps(heard))
    if name == "die":  # when it hears from another call
        ask()
        sys.stdin.readline()
        sys.exit(3)
    if name == "late":  # asks when the call is over
        send({"id": current[0], "result": text("done")})
        ask()
        answer()
        return None
    if name == "thousand":
        answers = []
        for _ in range(50):
            ask()
        for _ in range(50):
            answers.append(answer())
        return text(json.dumps(answers))
    if name == "huge":
        ask({"type": "object", "properties": {"field%d" % n: {"type": "string"} for n in range(5000)}})
    elif name == "nested":
        ask({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}})
    elif name == "address":
        ask(mode="url", url="https://evil.example/login", elicitationId="1")
    elif name == "hidden":
        ask({"type": "object", "properties": {"a": {"type": "string", "title": "A\\u202eB"}}}, "x\\u200by")
    else:
        ask()
    first = answer()
    if name == "slow":
        time.sleep(1.5)
    if name == "twice":
        ask()
        return text(json.dumps([first, answer()]))
    return text(json.dumps(first))
current = [None]
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        heard.append(message.get("result", message.get("error")))
        continue
    if "id" not in message:
        heard.append(message["method"])
        continue
    method, params = message["method"], message.get("params", {})
    current[0] = message["id"]
    if method == "initialize":
        heard.append(params["capabilities"])
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "test", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call":
        result = call(params["name"], params.get("arguments", {}))
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "unknown method"}})
        continue
    if result is not None:
        send({"id": message["id"], "result": result})
"""
)
"""`heard` tells what it was answered and notified of so far, first of all the capabilities of its client."""

SDK_ASKER: Final = """
import sys
sys.path[:0] = {paths!r}
from typing import Annotated
from mcp.server import MCPServer
from mcp.server.mcpserver import Elicit, Resolve
from pydantic import BaseModel
class Name(BaseModel):
    name: str
class Color(BaseModel):
    color: str
server = MCPServer("asker", version="1")
def ask_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)
def ask_color(name: Annotated[Name, Resolve(ask_name)]) -> Elicit[Color]:
    return Elicit("What is your favorite color?", Color)
@server.tool()
def greet(name: Annotated[Name, Resolve(ask_name)]) -> str:
    "Greets."
    return "Hello, " + name.name
@server.tool()
def paint(name: Annotated[Name, Resolve(ask_name)], color: Annotated[Color, Resolve(ask_color)]) -> str:
    "Asks twice."
    return name.name + " likes " + color.color
server.run("stdio")
"""
"""A server of the official SDK; `paths` is where Python finds it."""

SUITE_ASKER: Final = """
import sys
sys.path[:0] = {paths!r}
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
server = MCPServer("asking", version="1")
def form(required=(), **fields):
    return dict(type="object", properties=fields, required=list(required))
def text(**more):
    return dict(type="string", **more)
def titled(*titles):
    return [dict(const="value%d" % n, title=title) for n, title in enumerate(titles, 1)]
three = ["option1", "option2", "option3"]
FORMS = dict(
    test_elicitation=form(("username", "email"), username=text(description="User's response"),
                          email=text(description="User's email address")),
    test_elicitation_sep1034_defaults=form(
        name=text(default="John Doe"), age=dict(type="integer", default=30),
        score=dict(type="number", default=95.5), verified=dict(type="boolean", default=True),
        status=text(enum=["active", "inactive", "pending"], default="active")),
    test_elicitation_sep1330_enums=form(
        untitledSingle=text(enum=three), titledSingle=text(oneOf=titled("First", "Second")),
        legacyEnum=text(enum=["opt1", "opt2", "opt3"], enumNames=["One", "Two", "Three"]),
        untitledMulti=dict(type="array", items=text(enum=three)),
        titledMulti=dict(type="array", items=dict(anyOf=titled("First", "Second")))),
)
NAME, OK = form(["name"], name=text()), form(["ok"], ok=dict(type="boolean"))
ROUNDS = dict(
    **dict((name, [("form", "Fill in", schema)]) for name, schema in FORMS.items()),
    test_input_required_result_elicitation=[("user_name", "What is your name?", NAME)],
    test_input_required_result_request_state=[("confirm", "Please confirm", OK)],
    test_input_required_result_tampered_state=[("confirm", "Please confirm", OK)],
    test_input_required_result_multi_round=[
        ("step1", "Step 1: What is your name?", NAME),
        ("step2", "Step 2: What is your favorite color?", form(["color"], color=text()))],
)
def add_rounds(name, rounds):
    async def call(ctx: Context, message: str = "") -> str | InputRequiredResult:
        done = int(ctx.request_state or 0)
        if done == len(rounds):
            return "state-ok, hello " + repr(ctx.input_responses)
        key, own, schema = rounds[done]
        params = ElicitRequestFormParams(message=message or own, requested_schema=schema)
        asked = dict([(key, ElicitRequest(params=params))])
        return InputRequiredResult(input_requests=asked, request_state=str(done + 1))
    server.add_tool(call, name=name, description="Of the suite.", structured_output=False)
for name, rounds in ROUNDS.items():
    add_rounds(name, rounds)
server.run("stdio")
"""
"""A server of the official SDK with the tools of the conformance suite that ask for input. mcp-host speaks the newest
revision with it, and the suite one of either era with the gateway."""
