"""Codes that are good for one sign-in. They are only in memory: none outlives the program."""

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from agentbox.core import clock
from agentbox.core.frozen import frozen

_BYTES: Final = 32
_SEPARATOR: Final = "~"
MAX_CODES: Final = 2000  # more than users and those who make codes for themselves


@frozen
class Subject:
    """Whose session it becomes: of a user, of a named token (with `user`: of that user's token),
    or, if both are empty, of the first admin token.
    """

    user: str = ""
    token_id: str = ""

    @property
    def owner(self) -> str:
        """Who has the sessions: a user, else a token."""
        return f"user {self.user}" if self.user else f"token {self.token_id}"


class LoginCodes:
    """A subject has one code: a new one ends the earlier."""

    def __init__(self, now: Callable[[], datetime] = clock.now) -> None:
        self._now = now
        self._codes: dict[Subject, tuple[bytes, datetime]] = {}

    def make(self, subject: Subject, name: str, seconds: int) -> tuple[str, datetime]:
        """A code that begins with `name`, and when it ends."""
        self._remove_expired()
        while len(self._codes) >= MAX_CODES:
            del self._codes[next(iter(self._codes))]
        code = f"{name}{_SEPARATOR}{secrets.token_urlsafe(_BYTES)}"
        expires_at = self._now() + timedelta(seconds=seconds)
        self._codes[subject] = (_digest(code), expires_at)
        return code, expires_at

    def take(self, code: str) -> Subject | None:
        """Whose code it is; None for one that is unknown, used or expired. It is used then."""
        self._remove_expired()
        digest = _digest(code)
        found = next((subject for subject, row in self._codes.items() if row[0] == digest), None)
        if found is not None:
            del self._codes[found]
        return found

    def remove_user(self, name: str) -> None:
        """Ends the codes of a user."""
        self._codes = {key: row for key, row in self._codes.items() if key.user != name}

    def _remove_expired(self) -> None:
        now = self._now()
        self._codes = {key: row for key, row in self._codes.items() if row[1] > now}


def name_in(code: str) -> str:
    """The name with which a code begins; "" if it has none."""
    name, separator, _ = code.rpartition(_SEPARATOR)
    return name[:64] if separator else ""


def _digest(code: str) -> bytes:
    """Codes are found by it, so that the time of a comparison says nothing about them."""
    return hashlib.sha256(code.encode()).digest()
