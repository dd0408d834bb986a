"""The table `[backup]` as the plan has it."""

from typing import Literal

from agentbox.core.frozen import frozen


@frozen
class BackupPlan:
    """What is backed up, when, to whom and how long it is kept. `schedule`: 5-field cron in UTC, ""
    = never. `recipients` are public keys; `min_free` is in bytes, `rate` in bytes a second,
    `verify_percent` a day.
    """

    include: tuple[str, ...]
    schedule: str
    folder: str
    engine: Literal["archive", "restic"]
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
