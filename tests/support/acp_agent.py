"""A small agent of the Agent Client Protocol for tests, without any package: the prompt says what
it does. It is one script, given to Python by `-c`.
"""

SCRIPT = r'''
import json, os, sys, time

pending = {}

def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)

def update(session, **members):
    send(method="session/update", params={"sessionId": session, "update": members})

def say(session, text, **members):
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text}, **members)

def ask(method, **params):
    """The answer to a request of ours; cancellation meanwhile is remembered."""
    number = len(pending) + 100
    pending[number] = True
    send(id=number, method=method, params=params)
    while True:
        message = read()
        if message.get("id") == number and "method" not in message:
            return message.get("result", message.get("error"))
        if message.get("method") == "session/cancel":
            cancelled.append(True)

cancelled = []
cwd = {}

def turn(session, text):
    """The reason for its end."""
    del cancelled[:]
    word, _, rest = text.partition(" ")
    if word == "count":
        for number in range(int(rest)):
            say(session, f"{number} ", _meta={"sent": time.monotonic_ns()})
            time.sleep(0.01)
    elif word == "slowly":
        for number in range(int(rest)):
            say(session, f"{number} ")
            time.sleep(0.05)
    elif word == "edit":
        path = os.path.join(cwd[session], "made.txt")
        update(session, sessionUpdate="tool_call", toolCallId="call-1", title="Write made.txt",
               kind="edit", status="pending", locations=[{"path": path}])
        answer = ask("session/request_permission", sessionId=session,
            toolCall={"toolCallId": "call-1", "title": "Write made.txt"},
            options=[{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                     {"optionId": "no", "name": "Reject", "kind": "reject_once"}])
        if answer.get("outcome", {}).get("optionId") != "yes":
            update(session, sessionUpdate="tool_call_update", toolCallId="call-1", status="failed")
            say(session, "not allowed")
            return "cancelled" if cancelled else "end_turn"
        with open(path, "w") as stream:
            stream.write(rest + "\n")
        update(session, sessionUpdate="tool_call_update", toolCallId="call-1", status="completed",
               content=[{"type": "diff", "path": path, "oldText": None, "newText": rest + "\n"}])
        say(session, "made it")
    elif word == "files":
        path = os.path.join(cwd[session], "over-acp.txt")
        ask("fs/write_text_file", sessionId=session, path=path, content=rest)
        read_back = ask("fs/read_text_file", sessionId=session, path=path)
        say(session, f"read {read_back.get('content')} and {open(path).read()}")
    elif word == "terminal":
        made = ask("terminal/create", sessionId=session, command="sh", args=["-c", rest])
        where = {"sessionId": session, "terminalId": made["terminalId"]}
        ended = ask("terminal/wait_for_exit", **where)
        output = ask("terminal/output", **where)
        ask("terminal/release", **where)
        say(session, f"exit {ended.get('exitCode')}: {output['output'].strip()}")
    elif word == "novel":
        update(session, sessionUpdate="future_kind", anything={"path": "/workspace"}, _meta={"a": 1})
        send(method="_vendor/event", params={"sessionId": session, "b": 2})
        say(session, "done", unknownMember=[1, 2.5, "\u2603"])
    elif word == "garbage":
        sys.stdout.write("this is not JSON \x1b[31m\n")
        sys.stdout.flush()
    elif word == "wait":
        while not cancelled:
            if read().get("method") == "session/cancel":
                cancelled.append(True)
        return "cancelled"
    else:
        say(session, "you said: " + text)
    return "end_turn"

while True:
    message = read()
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        send(id=number, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": False},
             "agentInfo": {"name": "scripted", "version": "1"}, "authMethods": []})
    elif method == "session/new":
        session = f"inner-{os.getpid()}"
        cwd[session] = params["cwd"]
        send(id=number, result={"sessionId": session})
    elif method == "session/prompt":
        text = "".join(part.get("text", "") for part in params["prompt"])
        send(id=number, result={"stopReason": turn(params["sessionId"], text)})
    elif number is not None:
        send(id=number, error={"code": -32601, "message": "Method not found"})
'''
