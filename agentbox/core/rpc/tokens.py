"""Tokens that one program of the box presents to another one, each in a file."""

import os
import secrets
from pathlib import Path


def write_token(path: Path) -> str:
    """A new token, put in place of an earlier one, mode 0400. Raises OSError."""
    token = secrets.token_hex(32)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    staged = path.with_suffix(".new")
    staged.unlink(missing_ok=True)
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(token)
    staged.rename(path)
    return token
