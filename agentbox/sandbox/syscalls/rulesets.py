"""Landlock of an agent's own: its rules are memory of no process. A ruleset holds those that were added, and each
landlock_restrict_self(2) makes a domain with a copy of all that hold from then on. A domain stays as long as a thread or
a file that was opened in it, and nothing shows it, so all is charged by rule against what refills with time.

What a domain copies is at most the agent's own grants and, of the 15 layers that the kernel leaves it, the rules of the
largest ruleset there ever was. How many rules a ruleset may have is those that were added since the agent last had none open.

The kernel runs the calls itself: only how many there are matters. The launcher's own calls pass the filter by two words that
nobody else knows (`seccomp.OWN`), so a start asks nothing.

An agent with 2 GiB may have 1.4 million rules copied at once (128 MiB) and 776 a second for good; a program that sandboxes
each command with ten rules pays about 1,000 a command (100 grants, 60 rules that may be in a ruleset, 15 layers): 1,400
commands at once. It comes to a sixteenth of the memory in half an hour, if nothing of it is ever given back.
"""

import errno
import os
import time
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import usage
from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.listener import Listener, Notice

RULE: Final = 96  # bytes: struct landlock_rule with a layer, and the object that it is about
LAYERS: Final = 15  # LANDLOCK_MAX_NUM_LAYERS but the one that confines the agent
MOST_RULES: Final = 4_096  # that one ruleset may have
_DOMAIN: Final = 8  # rules: what one without any costs
_SHARE: Final = 16  # of the agent's memory
_REFILL_SECONDS: Final = 1_800
_FEW: Final = 48  # rules, with which no descriptors are looked at
_TARGET: Final = "anon_inode:[landlock-ruleset]"  # proc(5), of /proc/<pid>/fd


class Rulesets:
    """Of the tree below the calling process, of `memory` bytes (0: no limit) and that many grants."""

    def __init__(self, listener: Listener, memory: int, grants: int) -> None:
        self._listener, self._grants = listener, grants
        self._most = memory // _SHARE // RULE
        self._left: float = self._most
        self._at = time.monotonic()
        self._rules = self._largest = 0

    def make(self, notice: Notice) -> None:
        """landlock_create_ruleset."""
        if self._most and self._rules > _FEW and not _open_now():
            self._rules = 0
        self._listener.go_on(notice)

    def add(self, notice: Notice) -> None:
        """landlock_add_rule: goes on, or raises Denied (ENOMEM) at the limit."""
        if self._most and self._rules >= MOST_RULES:
            raise Denied(errno.ENOMEM, "landlock", f"rules in a ruleset at the limit of {MOST_RULES}")
        self._pay(1)
        self._rules += 1
        self._largest = max(self._largest, self._rules)
        self._listener.go_on(notice)

    def restrict(self, notice: Notice) -> None:
        """landlock_restrict_self: as `add`."""
        self._pay(_DOMAIN + self._grants + LAYERS * self._largest)
        self._listener.go_on(notice)

    def _pay(self, rules: int) -> None:
        if not self._most:
            return
        now = time.monotonic()
        refilled = self._left + (now - self._at) * self._most / _REFILL_SECONDS
        self._left, self._at = min(self._most, refilled), now
        if rules > self._left:
            raise Denied(errno.ENOMEM, "landlock", f"copied rules at the limit of {self._most}")
        self._left -= rules


def _open_now() -> bool:
    """Whether the tree has a ruleset, or may have one under way in a socket."""
    members = tree.descendants(tree.scan(), [os.getpid()])
    if any(map(tree.hides, members)):
        return True
    found = usage.descriptors([row.shown for row in members])
    return any(target == _TARGET or (target.startswith("socket:") and usage.carries(path)) for path, target in found)
