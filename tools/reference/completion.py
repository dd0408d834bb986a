"""The table of verbs and flags for shells, from the commands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
from agentbox.host.cli.completion.script import TABLE
from agentbox.host.cli.main import OTHER_NAMES, cli

# What the arguments of commands are, in their order; KINDS of agentbox.host.cli.completion.names.
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    **{f"bead {verb}": ("beads",) for verb in ("show", "claim", "release", "close", "tree")},
    "bead dep": ("beads", "beads"),
    **{f"agent {verb}": ("agents",) for verb in ("show", "stop", "logs", "attach", "revoke")},
    **{f"task {verb}": ("tasks",) for verb in ("show", "stop", "logs")},
    **{f"review {verb}": ("reviews",) for verb in ("show", "export", "commit", "discard")},
    **{f"approvals {verb}": ("approvals",) for verb in ("show", "approve", "deny")},
    **{f"sandbox {verb}": ("sandboxes",) for verb in ("exec", "show", "logs", "signal", "end")},
    **{f"pod {verb}": ("pods",) for verb in ("ls", "tree", "stat", "get", "put", "rm", "export")},
    "pod cp": ("pods", "pods"),
    **{f"memory {verb}": ("keys",) for verb in ("get", "put", "rm")},
    "token revoke": ("tokens",),
}


def outputs() -> Mapping[Path, str]:
    """Return the generated file and its text."""
    rows = dict(_walk("", cli))
    for other, name in OTHER_NAMES.items():
        rows |= {
            other + path.removeprefix(name): node
            for path, node in rows.items()
            if path.split(" ")[0] == name
        }
    rows[""]["verbs"] = sorted([*rows[""]["verbs"], *OTHER_NAMES])
    if unknown := sorted(set(_ARGUMENTS) - set(rows)):
        raise KeyError(f"no such command: {unknown[0]}")
    lines = ",\n".join(f"{json.dumps(path)}: {json.dumps(rows[path])}" for path in sorted(rows))
    return {TABLE: f"{{\n{lines}\n}}\n"}


def _walk(path: str, command: click.Command) -> Iterator[tuple[str, dict[str, Any]]]:
    context = click.Context(command)
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    verbs = command.list_commands(context) if isinstance(command, click.Group) else []
    yield (
        path,
        {
            "verbs": sorted(verbs),
            "flags": sorted({flag for one in options for flag in one.opts if flag[:2] == "--"}),
            "values": sorted(
                {flag for one in options if not (one.is_flag or one.count) for flag in one.opts}
            ),
            "kinds": list(_ARGUMENTS.get(path, ())),
        },
    )
    for verb in verbs:
        below = command.get_command(context, verb) if isinstance(command, click.Group) else None
        if below is not None:
            yield from _walk(f"{path} {verb}".strip(), below)
