"""A record of the last known state of a local store, outside of its directory, to detect a store
that was lost.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentbox.core.canonical import canonical_json
from agentbox.core.slot_errors import IntegrityError

WRITE_INTERVAL = 30.0  # seconds between writes while the store is open


class StoreRecord:
    """`stores/<slot>.json` in the state directory. Deleting that file accepts a new,
    empty store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = -WRITE_INTERVAL

    @property
    def due(self) -> bool:
        """Whether the record must be written again."""
        return time.monotonic() - self._written >= WRITE_INTERVAL

    def read(self, text: str, number: str) -> Mapping[str, Any] | None:
        """The last state of the store, a text and a number with these names; None if no store was
        opened before, or its loss was accepted. Raises IntegrityError.
        """
        try:
            document = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or (
            type(document.get(text)),
            type(document.get(number)),
        ) != (str, int):
            raise self.loss_error(self._path.name, "its record cannot be read")
        return document

    def write(self, **values: Any) -> None:
        """Replaces the record atomically. Raises OSError."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb"
        ) as file:
            file.write(canonical_json(values) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        self._written = time.monotonic()

    def loss_error(self, name: str, reason: str) -> IntegrityError:
        """The error for a store that has lost data."""
        return IntegrityError(
            f"cannot open {name}: {reason}; restore it, or remove stores/{self._path.name} from "
            "the state directory to accept the loss",
            hint='docs/howto/when-something-goes-wrong.md, "A store that vanished"',
            segment=None,
            line=None,
            seq=None,
        )
