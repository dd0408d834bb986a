"""Canonical form of data that is hashed: JSON with sorted keys and no spaces, UTF-8, and
`sha256:<hex>` over bytes.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

_CHUNK = 1 << 20


def canonical_json(data: Any) -> bytes:
    """Bytes that are equal whenever `data` is equal. Raises ValueError for NaN and infinities."""
    text = json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def sha256_hex(data: bytes) -> str:
    """The bare hex digest, as used in OCI blobs and lock files."""
    return hashlib.sha256(data).hexdigest()


def digest(data: bytes) -> str:
    """`sha256:<64 hex>`, as used in labels, the sentinel and `/v1/meta`."""
    return f"sha256:{sha256_hex(data)}"


def file_sha256(path: Path) -> str:
    """The hex SHA-256 of a file, read in chunks. Raises OSError."""
    hasher = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()
