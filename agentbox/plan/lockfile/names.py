"""File names as the Nix store takes them."""

import re
from urllib.parse import unquote

_FORBIDDEN = re.compile(r"[^A-Za-z0-9+._=-]")


def store_name(file_name: str) -> str:
    """The distributed name with every character that the store refuses replaced by `_`, leading dots dropped.

    Names that apt or a URL wrote with `%3a` mean the same file and give the same name.
    """
    return _FORBIDDEN.sub("_", unquote(file_name)).lstrip(".")
