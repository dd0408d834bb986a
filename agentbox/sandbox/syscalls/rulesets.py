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
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

RULE_BYTES: Final = 96  # bytes: struct landlock_rule with a layer, and the object that it is about
MAX_LAYERS: Final = 15  # LANDLOCK_MAX_NUM_LAYERS but the one that confines the agent
MAX_RULES: Final = 4_096  # that one ruleset may have
_DOMAIN_COST: Final = 8  # rules: what one without any costs
_SHARE: Final = 16  # of the agent's memory
_REFILL_SECONDS: Final = 1_800
_UNCHECKED_RULES: Final = 48  # rules, with which no descriptors are looked at
_TARGET: Final = "anon_inode:[landlock-ruleset]"  # proc(5), of /proc/<pid>/fd


class RulesetHandler:
    """Of the tree below the calling process, of `memory` bytes (0: no limit) and that many grants."""

    def __init__(self, notify_fd: NotificationFd, memory: int, grants: int) -> None:
        self._notify_fd, self._grants = notify_fd, grants
        self._maximum = memory // _SHARE // RULE_BYTES
        self._remaining: float = self._maximum
        self._refilled_at = time.monotonic()
        self._rules = self._largest = 0

    def make(self, notification: Notification) -> None:
        """landlock_create_ruleset."""
        if self._maximum and self._rules > _UNCHECKED_RULES and not _has_open_ruleset():
            self._rules = 0
        self._notify_fd.continue_syscall(notification)

    def add(self, notification: Notification) -> None:
        """landlock_add_rule: goes on, or raises Denied (ENOMEM) at the limit."""
        if self._maximum and self._rules >= MAX_RULES:
            raise DeniedCall(
                errno.ENOMEM, "landlock", f"rules in a ruleset at the limit of {MAX_RULES}"
            )
        self._charge(1)
        self._rules += 1
        self._largest = max(self._largest, self._rules)
        self._notify_fd.continue_syscall(notification)

    def restrict(self, notification: Notification) -> None:
        """landlock_restrict_self: as `add`."""
        self._charge(_DOMAIN_COST + self._grants + MAX_LAYERS * self._largest)
        self._notify_fd.continue_syscall(notification)

    def _charge(self, rules: int) -> None:
        if not self._maximum:
            return
        now = time.monotonic()
        refilled = self._remaining + (now - self._refilled_at) * self._maximum / _REFILL_SECONDS
        self._remaining, self._refilled_at = min(self._maximum, refilled), now
        if rules > self._remaining:
            raise DeniedCall(
                errno.ENOMEM, "landlock", f"copied rules at the limit of {self._maximum}"
            )
        self._remaining -= rules


def _has_open_ruleset() -> bool:
    """Whether the tree has a ruleset, or may have one under way in a socket."""
    members = tree.descendants(tree.scan(), [os.getpid()])
    if any(map(tree.is_unreadable, members)):
        return True
    descriptors = usage.descriptors([row.procfs_id for row in members])
    return any(
        target == _TARGET or (target.startswith("socket:") and usage.has_in_flight_fds(path))
        for path, target in descriptors
    )
