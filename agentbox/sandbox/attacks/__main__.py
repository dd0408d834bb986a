"""`python -m agentbox.sandbox.attacks FACTS [LINE...]`: tries the lines and prints one reply a line, as JSON. `neighbour` holds still,
`lend` prints its own token, `stay` does and holds still."""

import json
import signal
import sys

from agentbox.sandbox.attacks import gateway, neighbour
from agentbox.sandbox.attacks.battery import run
from agentbox.sandbox.attacks.line import Facts


def main(words: list[str]) -> None:
    """`words`: the facts as JSON, then names of lines; none means all that need no agent of their own."""
    if words[0] == "neighbour":
        neighbour.hold_still()
    if words[0] in ("lend", "stay"):
        print(gateway.token(), flush=True)
        if words[0] == "stay":
            signal.pause()
        return
    for name, reply in run(Facts.from_json(json.loads(words[0])), words[1:]):
        print(json.dumps({"line": name, "reply": reply}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
