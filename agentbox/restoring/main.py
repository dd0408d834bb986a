"""`python -m agentbox.restoring`: makes a restored state below the prefix of this process, or
settles one with the state of the stopped box. Prints one JSON object: `restored`, or `error` with
`message`, `hint` and `exit_code`. What `settle` restored is why budgets are those of the snapshot.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentbox.core.canonical import canonical_json
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.records.wire import to_wire
from agentbox.restoring.restore import make_state, settle
from agentbox.restoring.stream import receive


def main(arguments: Sequence[str]) -> int:
    """Returns 0 with an answer on stdout."""
    parser = argparse.ArgumentParser(prog="agentbox.restoring")
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("make", help="Make a state of the snapshot on stdin.")
    settling = steps.add_parser("settle", help="Take over what the stopped box spent.")
    settling.add_argument("snapshot")
    settling.add_argument("present", type=Path, help="The state folder of the stopped box.")
    given, paths = parser.parse_args(arguments), Paths.for_this_process()
    try:
        answer = _make(paths) if given.step == "make" else _settle(paths, given)
    except AgentboxError as error:
        code = int(error.exit_code)
        _print({"error": {"message": error.message, "hint": error.hint, "exit_code": code}})
        return 0  # an answer; other codes are failures of the program itself
    _print({"restored": answer})
    return 0


def _make(paths: Paths) -> Any:
    options, members = receive(sys.stdin.buffer)
    return to_wire(make_state(paths, members, options))


def _settle(paths: Paths, given: argparse.Namespace) -> Any:
    return settle(given.snapshot, paths, given.present)


def _print(document: Any) -> None:
    sys.stdout.buffer.write(canonical_json(document) + b"\n")
    sys.stdout.buffer.flush()
