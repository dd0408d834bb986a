"""Writes `backup.recipients` into a manifest and leaves the rest of its text as it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import write_atomically
from agentbox.manifest.toml_text import format_toml

_TABLE: Final = re.compile(r"^\[backup\][ \t]*(#.*)?$", re.MULTILINE)


def manifest_with_recipients(text: str, recipients: Sequence[str]) -> str:
    """The text with the recipients added: below `[backup]`, or in a new table at the end. Raises
    AgentboxError (exit 2) if the manifest names some already, or writes the table in another form.
    """
    before = tomllib.loads(text)
    line = f"recipients = {format_toml(list(recipients))}"
    if before.get("backup", {}).get("recipients"):
        raise AgentboxError(
            "cannot set up backups: the manifest has backup.recipients already",
            f"To change who can read new snapshots, edit that key: {line}",
            exit_code=ExitCode.USAGE,
        )
    if found := _TABLE.search(text):
        after = f"{text[: found.end()]}\n{line}{text[found.end() :]}"
    else:
        after = f"{text.rstrip()}\n\n[backup]\n{line}\n"
    expected = {**before, "backup": {**before.get("backup", {}), "recipients": list(recipients)}}
    try:
        is_same = tomllib.loads(after) == expected
    except tomllib.TOMLDecodeError:
        is_same = False
    if not is_same:
        raise AgentboxError(
            "cannot set up backups: the manifest writes its table [backup] in another form",
            f"Add this line to it: {line}",
            exit_code=ExitCode.USAGE,
        )
    return after


def write_recipients(manifest: Path, text: str) -> None:
    """Replaces the manifest; its mode stays. Raises AgentboxError (exit 3)."""
    target = manifest.resolve()
    write_atomically(target, text, mode=target.stat().st_mode & 0o777)
