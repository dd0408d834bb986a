"""`python -m agentbox.sandbox.attacks INFO [CASE...]`: runs the cases and prints one reply per
line, as JSON. `neighbour` runs as the victim, `lend` prints its own token, `stay` does so and keeps
running.
"""

import json
import signal
import sys

from agentbox.sandbox.attacks import gateway, victim
from agentbox.sandbox.attacks.case import TargetInfo
from agentbox.sandbox.attacks.case_runner import run_cases


def main(arguments: list[str]) -> None:
    """`arguments`: the target info as JSON, then names of cases; without names, all cases that do
    not need an agent of their own.
    """
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
