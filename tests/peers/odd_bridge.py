"""A child of orchestrator external-stdio that greets well and then does what its arguments say, over and over.

`python odd_bridge.py WORD...`: each WORD answers one method, `method=act`. What is not named is answered with `{}`,
and what is cancelled gets its answer then.
"""

import json
import sys

HELLO = {"contract_version": "1.0.0", "capabilities": []}
INFO_ERROR = {
    "code": -32000,
    "message": "no",
    "data": {"code": "not-found", "detail": "no", "resource": "agent", "id": "x"},
}


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main(acts):
    late = []
    for line in sys.stdin:
        message = json.loads(line)
        print(line, end="", file=sys.stderr, flush=True)
        number, method = message.get("id"), message.get("method")
        if method == "$/cancel":
            say({"id": message["params"]["id"], "result": {}})
        if number is None:
            continue
        match acts.get(method, ""):
            case "version":
                say({"id": number, "result": {**HELLO, "contract_version": "2.0.0"}})
            case "garbage":
                print("{ this is no message", flush=True)
            case "no-object":
                print("[1]", flush=True)
            case "bad-error":
                say({"id": number, "error": "no"})
            case "long":
                sys.stdout.write("x" * (33 << 20) + "\n")
                sys.stdout.flush()
            case "twice":
                for _ in range(2):
                    say({"id": number, "error": INFO_ERROR})
            case "unknown":
                say({"id": 1 << 40, "result": {}})
                say({"method": "agent.event", "params": {"subscription": 1 << 40, "items": []}})
                say({"id": number, "error": INFO_ERROR})
            case "backwards":
                late.append(number)
                if len(late) == 3:
                    for one in reversed(late):
                        say(
                            {
                                "id": one,
                                "error": {
                                    **INFO_ERROR,
                                    "data": {**INFO_ERROR["data"], "id": str(one)},
                                },
                            }
                        )
            case "never":
                pass
            case "odd":
                say({"id": number, "result": {"no": "such record"}})
            case "leave":
                return
            case _:
                say({"id": number, "result": HELLO if method == "initialize" else {}})


main(dict(word.split("=") for word in sys.argv[1:]))
