"""`python -m agentbox.restoring`: makes a restored or a fresh state below the prefix of this
process, settles one with the state of the stopped box, or copies that of a box that works. Prints
one JSON object: `restored`, or `error` with `message`, `hint` and `exit_code`. What `settle`
restored is why budgets are those of the snapshot, what `fresh` did the epoch of the journal, what
`copy` did its counts.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentbox.core.canonical import canonical_json
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.records.wire import to_wire
from agentbox.restoring.fresh import KEPT, make_fresh
from agentbox.restoring.live_copy import copy_live
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
    fresh = steps.add_parser("fresh", help="Make a state as before a first boot.")
    fresh.add_argument("box")
    fresh.add_argument("present", type=Path, help="The state folder of the present box.")
    fresh.add_argument("--keep", action="append", default=[], choices=KEPT)
    copying = steps.add_parser("copy", help="Copy the state of a box that works.")
    copying.add_argument("present", type=Path, help="The state folder of that box.")
    given, paths = parser.parse_args(arguments), Paths.for_this_process()
    try:
        answer = _STEPS[given.step](paths, given)
    except AgentboxError as error:
        code = int(error.exit_code)
        _print({"error": {"message": error.message, "hint": error.hint, "exit_code": code}})
        return 0  # an answer; other codes are failures of the program itself
    _print({"restored": answer})
    return 0


def _make(paths: Paths, _given: argparse.Namespace) -> Any:
    options, members = receive(sys.stdin.buffer)
    return to_wire(make_state(paths, members, options))


def _settle(paths: Paths, given: argparse.Namespace) -> Any:
    return settle(given.snapshot, paths, given.present)


def _fresh(paths: Paths, given: argparse.Namespace) -> Any:
    return make_fresh(paths, given.box, given.present, given.keep)


def _copy(paths: Paths, given: argparse.Namespace) -> Any:
    return copy_live(paths, given.present)


_STEPS: Final[Mapping[str, Callable[[Paths, argparse.Namespace], Any]]] = {
    "make": _make,
    "settle": _settle,
    "fresh": _fresh,
    "copy": _copy,
}


def _print(document: Any) -> None:
    sys.stdout.buffer.write(canonical_json(document) + b"\n")
    sys.stdout.buffer.flush()
