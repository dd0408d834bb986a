"""`python -m agentbox.sandbox.attacks INFO [CASE...]`: runs the cases and prints one reply per
line, as JSON. `victim` runs as the victim, `print-token` prints the agent's token, `hold-token`
does so and keeps running.
"""

import json
import signal
import sys

from agentbox.sandbox.attacks import gateway_client, victim
from agentbox.sandbox.attacks.case import TargetInfo
from agentbox.sandbox.attacks.case_runner import run_cases


def main(arguments: list[str]) -> None:
    """`arguments`: the target info as JSON, then names of cases; without names, all cases that do
    not need an agent of their own.
    """
    if arguments[0] == "victim":
        victim.run()
    if arguments[0] in ("print-token", "hold-token"):
        print(gateway_client.token(), flush=True)
        if arguments[0] == "hold-token":
            signal.pause()
        return
    for name, reply in run_cases(TargetInfo.from_json(json.loads(arguments[0])), arguments[1:]):
        print(json.dumps({"case": name, "reply": reply}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
