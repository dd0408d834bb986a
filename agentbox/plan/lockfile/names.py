"""File names valid in the Nix store."""

import re
from urllib.parse import unquote

_FORBIDDEN = re.compile(r"[^A-Za-z0-9+._=-]")


def store_name(file_name: str) -> str:
    """The file name with every character that the store rejects replaced by `_`, without leading
    dots. Names with `%3a`, as written by apt or in a URL, give the same result.
    """
    return _FORBIDDEN.sub("_", unquote(file_name)).lstrip(".")
