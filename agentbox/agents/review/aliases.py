"""Paths that links give to files: what something runs by such a path is marked as what it runs by its own."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from agentbox.agents.review.autorun import RUNS, folded, runs
from agentbox.agents.review.change import Change

_MOST_TRIES: Final = 20_000  # of paths that links give: an agent makes as many links as it likes
_MOST_HOPS: Final = 40  # from link to link, as path_resolution(7) has it
_MANY: Final = "links that something runs may lead to it: there are too many to tell"


def mark(changes: list[Change], links: Mapping[str, str]) -> list[Change]:
    """The changes with what runs them. `links`: all links of the branch and where each leads, both relative to where they
    are as on the disk."""
    aliases = _Aliases(links)
    return [_marked(one, aliases) for one in changes]


def _marked(change: Change, aliases: "_Aliases") -> Change:
    if change.runs:
        return change
    if any(side is not None and side.kind == "link" for side in (change.old, change.new)):
        return replace(change, runs=_runs_link(change.path))
    return replace(change, runs=aliases.runs(change.path))


def _runs_link(path: str) -> str:
    """What runs a link by itself, or what lies where it leads, were it a folder of that name."""
    name = folded(path.rpartition("/")[2])
    for why, patterns in RUNS.items():
        for pattern in patterns:
            if any(fnmatchcase(name, part) for part in pattern.split("/")[:-1]):
                return why
    return runs(path)


class _Aliases:
    def __init__(self, links: Mapping[str, str]) -> None:
        self._links, self._tries = links, 0
        self._of: defaultdict[str, set[str]] = defaultdict(set)  # by where they lead
        for path in links:
            if _runs_link(path):
                self._of[self._target(path)].add("/".join(path.split("/")[-2:]))

    def runs(self, path: str) -> str:
        """What runs the file at that path by another one."""
        parts = path.split("/")
        for at in range(len(parts), -1, -1) if self._of else ():
            for alias in self._of.get("/".join(parts[:at]), ()):
                self._tries += 1
                if self._tries > _MOST_TRIES:
                    return _MANY
                if why := runs("/".join((alias, *parts[at:]))):
                    return why
        return ""

    def _target(self, path: str) -> str:
        """Where it leads in the end; what leaves the workspace stays at its top."""
        left, there, hops = path.split("/")[::-1], list[str](), 0
        while left:
            name = left.pop()
            if name in ("", "."):
                continue
            if name == "..":
                del there[-1:]
                continue
            there.append(name)
            leads = self._links.get("/".join(there))
            if leads is not None and hops < _MOST_HOPS:
                hops += 1
                there.pop()
                left += leads.split("/")[::-1]
        return "/".join(there)
