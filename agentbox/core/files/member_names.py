"""Names of files as text, in JSON and in messages."""

import os


def member_name(path: str) -> str:
    """A path as it is in UTF-8, but for `\\` as `\\\\` and other bytes as `\\xNN`: different paths
    have different names.
    """
    return os.fsencode(path).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
