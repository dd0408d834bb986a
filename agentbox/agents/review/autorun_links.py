"""Autorun through links: a file is marked if a link gives it a path that runs by itself."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from agentbox.agents.review.autorun import autorun_reason, link_autorun_reason
from agentbox.agents.review.change import FileChange

_MAX_TRIES: Final = 20_000  # of paths through links, whose number the agent controls
_MAX_HOPS: Final = 40  # link to link, as in path_resolution(7)
_TOO_MANY: Final = "it may run through a link: there are too many links to check"


def mark_autorun(changes: list[FileChange], links: Mapping[str, str]) -> list[FileChange]:
    """The changes with their autorun reasons. `links`: all links of the branch and their targets,
    both relative as on disk."""
    aliases = _LinkAliases(links)
    return [_mark_change(change, aliases) for change in changes]


def _mark_change(change: FileChange, aliases: "_LinkAliases") -> FileChange:
    if change.runs:
        return change
    if any(state is not None and state.kind == "link" for state in (change.old, change.new)):
        return replace(change, runs=link_autorun_reason(change.path))
    return replace(change, runs=aliases.autorun_reason(change.path))


class _LinkAliases:
    def __init__(self, links: Mapping[str, str]) -> None:
        self._links, self._tries = links, 0
        self._by_target: defaultdict[str, set[str]] = defaultdict(set)  # by target
        for path in links:
            if link_autorun_reason(path):
                self._by_target[self._target(path)].add("/".join(path.split("/")[-2:]))

    def autorun_reason(self, path: str) -> str:
        """Why the file runs through another path."""
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
        """The final target; links out of the workspace end at its root."""
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
