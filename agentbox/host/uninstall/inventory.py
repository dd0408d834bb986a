"""The inventory of this user: what agentbox makes on this host, noted before it is made.

`inventory.jsonl` in the state root has one JSON object a line, `{"kind": ..., "name": ...}`. A line
is appended and synchronised before the act, so a command that is killed at any point leaves nothing
that no line names. A line without an act is harmless: what does not exist is not removed. A line
with `"gone": true` takes back the earlier ones of that item. Standard library only, beside paths
and errors: every start appends to it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from agentbox.core.files.atomic_text import wrap_os_errors, write_atomically
from agentbox.core.paths import HostPaths
from agentbox.host.engines.sudo_user import chown_file, make_directory

FILE_NAME: Final = "inventory.jsonl"
Kind = Literal[
    "box",  # name; its state directory is below the state root
    "checkout",  # path; it has the Python environment
    "process-root",  # path of the files of a process-engine box
    "access-list",  # path of an operator's directory
    "volume",  # name of a docker volume
    "image",  # id, or reference of a pulled one
    "cache",  # path
    "parent",  # path of a directory that is removed if it is empty
    "daemon",  # the dockerd that agentbox started; the path of its record
    "packet-filter",  # `iptables ACCEPT`: the policy of FORWARD before that dockerd
    "forwarding",  # net.ipv4.ip_forward before that dockerd
    "interface",  # network interface of that dockerd
    "package",  # Debian package
    "package-data",  # path of what an installed package writes and its removal leaves
    "group",  # group that an installed package adds
    "user",  # likewise
]
KINDS: Final[frozenset[str]] = frozenset(get_args(Kind))


@dataclass(frozen=True)
class Item:
    """One thing on this host."""

    kind: Kind
    name: str


@dataclass(frozen=True)
class Inventory:
    """The inventory in a state root."""

    directory: Path

    @classmethod
    def for_this_user(cls) -> Inventory:
        return cls(HostPaths.for_this_user().state_root)

    @property
    def file(self) -> Path:
        return self.directory / FILE_NAME

    def add(self, kind: Kind, *names: str | Path) -> None:
        """Notes what is about to be made. Raises AgentboxError (exit 3)."""
        known = set(self.items())
        new = [item for name in names if (item := Item(kind, str(name))) not in known]
        if not new:
            return
        made = _missing_parents(self.directory)
        with wrap_os_errors(f"write {self.file}"):
            make_directory(self.directory)
        self._append([*(Item("parent", str(path)) for path in made), *new])

    def add_absent(self, kind: Kind, *paths: Path) -> None:
        """Notes those paths that do not exist yet: what exists is not agentbox's."""
        self.add(kind, *(path for path in paths if not os.path.lexists(path)))

    def add_directory(self, kind: Kind, path: Path) -> None:
        """Notes a directory and those parents of it that would be made with it."""
        self.add("parent", *_missing_parents(path))
        self.add(kind, path)

    def items(self) -> list[Item]:
        """Everything noted, in that order. A line that a killed command left incomplete is
        ignored: its act was not begun."""
        if not self.file.exists():
            return []
        with wrap_os_errors(f"read {self.file}"):
            lines = self.file.read_bytes().splitlines()
        items: dict[Item, None] = {}
        for item, gone in filter(None, map(_parse, lines)):
            if gone:
                items.pop(item, None)
            else:
                items.setdefault(item)
        return list(items)

    def names(self, kind: Kind) -> list[str]:
        """The names of the items of one kind."""
        return [item.name for item in self.items() if item.kind == kind]

    def take_back(self, kind: Kind, *names: str | Path) -> None:
        """Notes what was removed again while other commands may append. Raises AgentboxError (exit
        3)."""
        known = set(self.items())
        if gone := [item for name in names if (item := Item(kind, str(name))) in known]:
            self._append(gone, gone=True)

    def replace(self, items: Iterable[Item]) -> None:
        """Replaces the inventory by what remains."""
        write_atomically(self.file, b"".join(_line(item) for item in items))
        chown_file(self.file)

    def _append(self, items: Iterable[Item], *, gone: bool = False) -> None:
        """A new line first: the last one may be incomplete."""
        with wrap_os_errors(f"write {self.file}"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            with os.fdopen(os.open(self.file, flags, 0o600), "wb") as stream:
                stream.write(b"\n" + b"".join(_line(item, gone=gone) for item in items))
                stream.flush()
                os.fsync(stream.fileno())
            chown_file(self.file)


def _line(item: Item, *, gone: bool = False) -> bytes:
    row = {"kind": item.kind, "name": item.name}
    return json.dumps({**row, "gone": True} if gone else row).encode() + b"\n"


def _parse(line: bytes) -> tuple[Item, bool] | None:
    """The item, and whether the line takes it back."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or row.get("kind") not in KINDS:
        return None
    return Item(row["kind"], str(row.get("name", ""))), row.get("gone") is True


def _missing_parents(path: Path) -> list[Path]:
    """The directories above `path` that do not exist, the highest first."""
    return [step for step in reversed(path.absolute().parents) if not step.exists()]
