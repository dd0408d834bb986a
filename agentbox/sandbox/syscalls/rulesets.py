"""Landlock rulesets of an agent: limits their kernel memory, which belongs to no process.

A ruleset holds the rules that were added, and each landlock_restrict_self(2) creates a domain with
a copy of all rules in force from then on. A domain lives as long as a thread or a file that was
opened in it, and cannot be observed, so all rules are charged to a budget that refills with time.

A domain copies at most the agent's grants and, for each of the remaining 15 layers, the rules of
the largest ruleset so far. The size of a ruleset is bounded by the rules that were added since the
agent last had no ruleset open.

The kernel runs the calls itself: only their number matters. The launcher's own calls pass the
filter by two secret words (`landlock.LAUNCHER_COOKIE`), so a start needs no notification.

An agent with 2 GiB may have 1.4 million rules copied at once (128 MiB) and 776 a second thereafter;
a program that sandboxes each command with ten rules pays about 1,000 a command (100 grants, 60
rules that may be in a ruleset, 15 layers): 1,400 commands at once. That is a sixteenth of the
memory in half an hour, if none of it is freed.
"""

import errno
import os
import time
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.monitor import disk_usage
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

RULE_BYTES: Final = 96  # bytes: struct landlock_rule with a layer, and its object
MAX_LAYERS: Final = 15  # LANDLOCK_MAX_NUM_LAYERS minus the one that confines the agent
MAX_RULES: Final = 4_096  # per ruleset
_DOMAIN_COST: Final = 8  # in rules: the cost of an empty domain
_SHARE: Final = 16  # of the agent's memory
_REFILL_SECONDS: Final = 1_800
_UNCHECKED_RULES: Final = 48  # rules up to which no descriptors are read
_TARGET: Final = "anon_inode:[landlock-ruleset]"  # proc(5), of /proc/<pid>/fd


class RulesetHandler:
    """The tree below the calling process, with `memory` bytes (0: no limit) and that
    many grants.
    """

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
        """landlock_add_rule: continues the call, or raises DeniedCall (ENOMEM) at the limit."""
        if self._maximum and self._rules >= MAX_RULES:
            raise DeniedCall(
                errno.ENOMEM, "landlock", f"rules in a ruleset at the limit of {MAX_RULES}"
            )
        self._charge(1)
        self._rules += 1
        self._largest = max(self._largest, self._rules)
        self._notify_fd.continue_syscall(notification)

    def restrict(self, notification: Notification) -> None:
        """landlock_restrict_self: like `add`."""
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
    """Whether the tree has a ruleset open, or may have one in flight in a socket."""
    members = tree.descendants(tree.scan(), [os.getpid()])
    if any(map(tree.is_unreadable, members)):
        return True
    descriptors = disk_usage.descriptors([row.procfs_id for row in members])
    return any(
        target == _TARGET or (target.startswith("socket:") and disk_usage.has_in_flight_fds(path))
        for path, target in descriptors
    )
