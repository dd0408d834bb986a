"""Paths that links give to files: what something runs by such a path is marked as what it runs by its own."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from agentbox.agents.review.autorun import AUTORUN_PATTERNS, autorun_reason, fold_name
from agentbox.agents.review.change import FileChange

_MAX_TRIES: Final = 20_000  # of paths that links give: an agent makes as many links as it likes
_MAX_HOPS: Final = 40  # from link to link, as path_resolution(7) has it
_TOO_MANY: Final = "links that something runs may lead to it: there are too many to tell"


def mark_autorun(changes: list[FileChange], links: Mapping[str, str]) -> list[FileChange]:
    """The changes with what runs them. `links`: all links of the branch and where each leads, both relative to where they
    are as on the disk."""
    aliases = _LinkAliases(links)
    return [_mark_change(change, aliases) for change in changes]


def _mark_change(change: FileChange, aliases: "_LinkAliases") -> FileChange:
    if change.runs:
        return change
    if any(state is not None and state.kind == "link" for state in (change.old, change.new)):
        return replace(change, runs=_link_autorun_reason(change.path))
    return replace(change, runs=aliases.autorun_reason(change.path))


def _link_autorun_reason(path: str) -> str:
    """What runs a link by itself, or what lies where it leads, were it a folder of that name."""
    name = fold_name(path.rpartition("/")[2])
    for reason, patterns in AUTORUN_PATTERNS.items():
        for pattern in patterns:
            if any(fnmatchcase(name, directory) for directory in pattern.split("/")[:-1]):
                return reason
    return autorun_reason(path)


class _LinkAliases:
    def __init__(self, links: Mapping[str, str]) -> None:
        self._links, self._tries = links, 0
        self._by_target: defaultdict[str, set[str]] = defaultdict(set)  # by where they lead
        for path in links:
            if _link_autorun_reason(path):
                self._by_target[self._target(path)].add("/".join(path.split("/")[-2:]))

    def autorun_reason(self, path: str) -> str:
        """What runs the file at that path by another one."""
        parts = path.split("/")
        for index in range(len(parts), -1, -1) if self._by_target else ():
            for alias in self._by_target.get("/".join(parts[:index]), ()):
                self._tries += 1
                if self._tries > _MAX_TRIES:
                    return _TOO_MANY
                if reason := autorun_reason("/".join((alias, *parts[index:]))):
                    return reason
        return ""

    def _target(self, path: str) -> str:
        """Where it leads in the end; what leaves the workspace stays at its top."""
        remaining, resolved, hops = path.split("/")[::-1], list[str](), 0
        while remaining:
            name = remaining.pop()
            if name in ("", "."):
                continue
            if name == "..":
                del resolved[-1:]
                continue
            resolved.append(name)
            target = self._links.get("/".join(resolved))
            if target is not None and hops < _MAX_HOPS:
                hops += 1
                resolved.pop()
                remaining += target.split("/")[::-1]
        return "/".join(resolved)
