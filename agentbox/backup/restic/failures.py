"""What restic says when it fails, as errors of backups. Its exit codes tell some failures apart
since 0.17 only, and a box or a host may have an earlier one: its sentences are read.
"""

import re
from typing import Final

from agentbox.backup.errors import (
    BUSY,
    FULL,
    GONE,
    PASSWORD,
    READ_ONLY,
    UNREACHABLE,
    UNUSABLE,
    BackupError,
)
from agentbox.backup.repository import Fault
from agentbox.core.errors import ExitCode
from agentbox.core.visible_text import escape_invisible

MAX_FAULTS: Final = 10
_LINE: Final = 300
_WORDS: Final = (
    (PASSWORD, "its password is another one", ("wrong password", "no key found")),
    (FULL, "it is full", ("no space left", "quota exceeded", "XMinioStorageFull")),
    (
        UNREACHABLE,
        "its host does not let the box in",
        ("Permission denied (", "Too many authentication failures", "AccessDenied", "401 Unauth"),
    ),
    (
        UNREACHABLE,
        "its host showed another key than `backup.ssh_host_key`",
        ("Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"),
    ),
    (
        UNREACHABLE,
        "ssh needs a user of this host with the id that the box runs as, and there is none",
        ("No user exists for uid",),
    ),
    (READ_ONLY, "it is read-only", ("read-only file system", "Read-only file system")),
    (READ_ONLY, "no permission", ("permission denied", "operation not permitted")),
    (
        UNREACHABLE,
        "its host cannot be reached",
        (
            "Connection refused",
            "connection refused",
            "Could not resolve hostname",
            "no such host",
            "No route to host",
            "network is unreachable",
            "Connection timed out",
            "i/o timeout",
            "kex_exchange_identification",
            "Connection closed by",
            "Connection reset by",
            "unable to start the sftp session",
        ),
    ),
    (BUSY, "another program has locked it", ("already locked", "unable to create lock")),
    (
        GONE,
        "it is gone",
        ("unable to open config file", "Is there a repository", "repository does not exist"),
    ),
)
_HINTS: Final = {
    PASSWORD: "Set the secret of `backup.password_env` to the password of this repository.",
    BUSY: "Wait until it ends. `restic unlock` removes the lock of one that was killed.",
    UNREACHABLE: "Earlier snapshots are unchanged. Check `backup.repository` and its credentials.",
}
_HINT: Final = (
    "Earlier snapshots are unchanged. Free room or repair the repository, then run "
    "`agentbox backup create`."
)
_EXITS: Final = {PASSWORD: ExitCode.USAGE, BUSY: ExitCode.BUSY}
_FILE: Final = re.compile(r"\b[0-9a-f]{8,64}\b")


def failure(action: str, said: str) -> BackupError:
    """`cannot <action>: <why>` from what restic wrote to stderr."""
    reason, why = _reason(said)
    return BackupError(
        reason,
        f"cannot {action}: {why}",
        _HINTS.get(reason, _HINT),
        exit_code=_EXITS.get(reason, ExitCode.PREREQUISITE),
    )


def _reason(said: str) -> tuple[str, str]:
    for reason, why, words in _WORDS:
        if any(word in said for word in words):
            return reason, why
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("Fatal:")] or lines[-1:]
    return UNUSABLE, escape_invisible(fatal[0][:_LINE] if fatal else "restic was killed")


def faults_of_check(said: str) -> list[Fault]:
    """What `restic check` found, one row for each file of the repository."""
    found: dict[str, Fault] = {}
    for line in said.splitlines():
        text = line.strip().removeprefix("error: ").removeprefix("error for ")
        if not text or text.startswith(("Fatal:", "The repository contains", "signal ")):
            continue
        named = _FILE.search(text)
        name = f"restic/{named[0]}" if named else "restic"
        found.setdefault(name, Fault(name, escape_invisible(text[:_LINE])))
    return list(found.values())[:MAX_FAULTS] or [Fault("restic", "is damaged: `restic check`")]
