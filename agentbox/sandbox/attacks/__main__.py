"""`python -m agentbox.sandbox.attacks FACTS [LINE...]`: tries the lines and prints one reply a line, as JSON. `neighbour` holds still,
`lend` prints its own token, `stay` does and holds still."""

import json
import signal
import sys

from agentbox.sandbox.attacks import gateway, victim
from agentbox.sandbox.attacks.case import TargetInfo
from agentbox.sandbox.attacks.case_runner import run_cases


def main(arguments: list[str]) -> None:
    """`words`: the facts as JSON, then names of lines; none means all that need no agent of their own."""
    if arguments[0] == "neighbour":
        victim.run()
    if arguments[0] in ("lend", "stay"):
        print(gateway.token(), flush=True)
        if arguments[0] == "stay":
            signal.pause()
        return
    for name, reply in run_cases(TargetInfo.from_json(json.loads(arguments[0])), arguments[1:]):
        print(json.dumps({"line": name, "reply": reply}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
