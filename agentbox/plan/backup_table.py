"""The table `[backup]` as the plan has it."""

from typing import Any, Final, Literal

from agentbox.core.frozen import frozen

RESTIC_KEYS: Final = (
    "repository",
    "password_env",
    "ssh_key_env",
    "ssh_host_key",
    "credentials",
    "verify_percent",
)


@frozen
class BackupPlan:
    """What is backed up, when, to whom and how long it is kept. `schedule`: 5-field cron in UTC, ""
    = never. `repository` is restic's address, "" for the folder; `password_env`, `ssh_key_env` and
    `credentials` name secrets. `recipients` are public keys; `min_free` is in bytes, `rate` in
    bytes a second, `verify_percent` a day.
    """

    include: tuple[str, ...]
    schedule: str
    folder: str
    engine: Literal["archive", "restic"]
    repository: str
    password_env: str
    ssh_key_env: str
    ssh_host_key: str
    credentials: tuple[str, ...]
    recipients: tuple[str, ...]
    encrypt: Literal["age", "none"]
    keep: int
    keep_daily: int
    keep_weekly: int
    keep_monthly: int
    external: Literal["skip", "dump"]
    min_free: int
    rate: int
    verify_percent: int
    prune_journal: bool
    journal_days: int

    @property
    def is_set_up(self) -> bool:
        """Whether somebody can read a backup, so that one is made."""
        return self.engine == "restic" or self.encrypt == "none" or bool(self.recipients)

    def request(self, box: str) -> dict[str, Any]:
        """What every request to the program `backup` has: names of secrets, and no secret."""
        restic = {name: getattr(self, name) for name in RESTIC_KEYS}
        restic["credentials"] = list(self.credentials)
        return {
            "box": box,
            "recipients": None if self.encrypt == "none" else list(self.recipients),
            "restic": restic if self.engine == "restic" else None,
        }
