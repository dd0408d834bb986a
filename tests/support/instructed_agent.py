"""An agent that speaks ACP and does what a prompt says, one instruction a line. It has no
dependency, so that any interpreter of a box runs it.

say TEXT            one message
burst N             N messages, numbered
slow N              likewise, 50 ms between them
ask KIND            a permission; says the outcome
read PATH           a file of the client; says its text
write PATH TEXT     likewise
run COMMAND         a terminal; says its output and status
sleep SECONDS       until then, or until it is cancelled
deaf                answers nothing any more, not even a cancellation
die CODE            ends
garbage             a line that is not JSON
endless             a line without an end
raw LINE            that line, as it is
raws N LINE         that line N times, with %d for its number
unknown             an update and a notification that the protocol does not have
where               says its working directory

A file `hold` in its working directory names a method: it does not answer that one until there is a
file `go`, once, and makes a file `held` when it waits.
"""

SCRIPT = r"""
import json
import os
import sys
import threading
import time

LOADS = "--load" in sys.argv  # it keeps its session in HOME, and can load it
RESUMES = "--resume" in sys.argv  # likewise, without telling what was said
STORE = os.path.expanduser("~/acp-session.json")
lock = threading.Lock()
answers = {}
arrived = threading.Condition()
cancelled = threading.Event()
deaf = threading.Event()
numbers = iter(range(1, 1 << 30))


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def call(method, params):
    n = f"a{next(numbers)}"
    send({"id": n, "method": method, "params": params})
    with arrived:
        arrived.wait_for(lambda: n in answers)
        return answers.pop(n)


def update(session, text):
    content = {"type": "text", "text": text}
    change = {"sessionUpdate": "agent_message_chunk", "content": content}
    send({"method": "session/update", "params": {"sessionId": session, "update": change}})


def ask(session, kind):
    tool = {"toolCallId": "t1", "title": "a \x1b[31mred\x1b[0m thing", "kind": kind}
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "always", "name": "Always", "kind": "allow_always"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    params = {"sessionId": session, "toolCall": tool, "options": options}
    answer = call("session/request_permission", params)
    update(session, json.dumps(answer.get("result", answer.get("error"))["outcome"]) + "\n")


def do(session, line):
    word, _, rest = line.partition(" ")
    path = os.path.join(os.getcwd(), rest.partition(" ")[0])
    if word == "say":
        update(session, rest + "\n")
    elif word == "burst":
        for n in range(int(rest)):
            update(session, f"{n} ")
    elif word == "slow":
        for n in range(int(rest)):
            update(session, f"{n} ")
            time.sleep(0.05)
    elif word == "ask":
        ask(session, rest)
    elif word == "read":
        answer = call("fs/read_text_file", {"sessionId": session, "path": path})
        update(session, json.dumps(answer.get("result") or answer["error"]["message"]) + "\n")
    elif word == "write":
        text = rest.partition(" ")[2]
        params = {"sessionId": session, "path": path, "content": text}
        answer = call("fs/write_text_file", params)
        update(session, json.dumps(answer.get("result", answer.get("error"))) + "\n")
    elif word == "run":
        made = call(
            "terminal/create", {"sessionId": session, "command": "sh", "args": ["-c", rest]}
        )
        terminal = {"sessionId": session, "terminalId": made["result"]["terminalId"]}
        status = call("terminal/wait_for_exit", terminal)["result"]
        output = call("terminal/output", terminal)["result"]["output"]
        call("terminal/release", terminal)
        update(session, f"{output.strip()} exit {status['exitCode']}\n")
    elif word == "sleep":
        cancelled.wait(float(rest))
    elif word == "deaf":
        deaf.set()
        cancelled.wait()
    elif word == "die":
        print("last words", file=sys.stderr, flush=True)
        os._exit(int(rest))
    elif word == "garbage":
        with lock:
            sys.stdout.write("Welcome to \x1b[1mthe agent\n")
            sys.stdout.flush()
        time.sleep(3600)
    elif word == "endless":
        with lock:
            while True:
                sys.stdout.write("x" * 4096)
    elif word == "raw":
        with lock:
            sys.stdout.write(rest + "\n")
            sys.stdout.flush()
    elif word == "raws":
        count, _, line = rest.partition(" ")
        with lock:
            for n in range(int(count)):
                sys.stdout.write(line.replace("%d", str(n)) + "\n")
            sys.stdout.flush()
    elif word == "unknown":
        change = {"sessionUpdate": "of_tomorrow", "x": [1, {"y": None}]}
        send({"method": "session/update", "params": {"sessionId": session, "update": change}})
        send({"method": "_vendor/told", "params": {"sessionId": session, "z": 1}})
    elif word == "where":
        update(session, os.getcwd() + "\n")


def prompt(message):
    session = message["params"]["sessionId"]
    cancelled.clear()
    if LOADS:
        said = json.load(open(STORE)) if os.path.exists(STORE) else []
        json.dump([*said, message["params"]["prompt"]], open(STORE, "w"))
    for block in message["params"]["prompt"]:
        if block["type"] == "resource":
            update(session, f"history of {len(block['resource']['text'])} characters\n")
        for line in block.get("text", "").splitlines():
            if not cancelled.is_set():
                do(session, line)
    if not deaf.is_set():
        reason = "cancelled" if cancelled.is_set() else "end_turn"
        send({"id": message["id"], "result": {"stopReason": reason}})


def hold(method):
    if os.path.exists("held") or not os.path.exists("hold"):
        return
    if open("hold").read().strip() == method:
        open("held", "w").close()
        while not os.path.exists("go"):
            time.sleep(0.02)


def load(message):
    session = message["params"]["sessionId"]
    for said in json.load(open(STORE)):
        content = {"type": "text", "text": said[0].get("text", "")}
        change = {"sessionUpdate": "user_message_chunk", "content": content}
        send({"method": "session/update", "params": {"sessionId": session, "update": change}})
    send({"id": message["id"], "result": {}})


def main():
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        hold(method)
        if method is None:
            with arrived:
                answers[message["id"]] = message
                arrived.notify_all()
        elif method == "initialize":
            capabilities = {"loadSession": LOADS, "promptCapabilities": {"embeddedContext": True}}
            if RESUMES:
                capabilities["sessionCapabilities"] = {"resume": {}}
            send(
                {
                    "id": message["id"],
                    "result": {"protocolVersion": 1, "agentCapabilities": capabilities},
                }
            )
        elif method == "session/new":
            send({"id": message["id"], "result": {"sessionId": f"inner-{os.getpid()}"}})
        elif method == "session/load":
            load(message)
        elif method == "session/resume":
            send({"id": message["id"], "result": {}})
        elif method == "session/cancel":
            if not deaf.is_set():
                cancelled.set()
        elif method == "session/prompt":
            threading.Thread(target=prompt, args=(message,), daemon=True).start()


main()
"""
