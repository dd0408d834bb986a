"""Errors of backups over HTTP."""

from agentbox.core.adapter_error import AdapterError


class BackupRunning(AdapterError):
    """Another backup is being made."""

    code, status, names = "backup-running", 409, ("id",)


class BackupBusy(AdapterError):
    """Writes could not be paused: each of three times some took too long."""

    code, status, retryable = "backup-busy", 503, True


class BackupNotSetUp(AdapterError):
    """Nobody could read a backup: there are no recipients."""

    code, status = "backup-not-set-up", 409


class BackupUnusable(AdapterError):
    """The repository or a snapshot cannot be used. `reason` is a word of the event
    `backup.failed`.
    """

    code, status, names = "backup-unusable", 502, ("reason",)
