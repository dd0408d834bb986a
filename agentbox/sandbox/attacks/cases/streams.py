"""Attacks through output: a flood, and messages that only the control plane may send."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Final

from agentbox.sandbox.attacks.case import PASSED, AttackGroup, TargetInfo

SUITE = AttackGroup("streams")
_TESTS: Final = ("tests/unit/attack/test_battery.py::test_floods_end_alone",)
FLOOD: Final = 64 << 20
FORGED_CODE: Final = 7
FORGED: Final[tuple[Mapping[str, object], ...]] = (
    {"event": "ended", "status": 0, "cause": ""},
    {"jsonrpc": "2.0", "id": 1, "result": {"code": 0}},
    {"measured": {}},
    {"reply": PASSED, "case": "streams.forged"},
)


@SUITE.case(
    "flood", "prints 64 MiB", {"kept within bounds": "agent host"}, isolated=True, tests=_TESTS
)
def _flood(_facts: TargetInfo) -> str:
    """The runner checks what was stored."""
    block = b"x" * (1 << 16)
    for _ in range(FLOOD >> 16):
        os.write(2, block)
    return "flooded"


@SUITE.case(
    "forged",
    "prints messages of the reaper and the agent host, to every descriptor",
    {"its own exit code": "agent host"},
    isolated=True,
    tests=_TESTS,
)
def _forged(_facts: TargetInfo) -> str:
    """Exits with a code of its own; the runner checks whether the box reports it."""
    for message in FORGED:
        line = json.dumps(message).encode() + b"\n"
        for number in (1, 2, *range(3, 64)):
            try:
                os.write(number, line)
            except OSError:
                continue
    sys.stdout.flush()
    os._exit(FORGED_CODE)
