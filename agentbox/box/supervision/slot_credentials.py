"""The credentials named in the options of a slot: `<kind>_env` is a secret of the box,
`<kind>_file` a file in it, and each name in `env` a secret for its child program.
"""

from collections.abc import Mapping
from typing import Any

from agentbox.box.supervision.secrets import read_secret, read_text
from agentbox.core.paths import Paths

KINDS = ("dsn", "token")


def slot_secrets(paths: Paths, options: Mapping[str, Any]) -> dict[str, str]:
    """Kind -> value, `env:NAME` -> value. A kind whose variable is unset or whose file is missing
    is omitted; the slot reports it.

    Raises AgentboxError for a file that cannot be read.
    """
    values: dict[str, str] = {}
    for kind in KINDS:
        if path := options.get(f"{kind}_file"):
            value = _read_file(paths, str(path))
        elif name := options.get(f"{kind}_env"):
            value = (read_secret(paths, str(name)) or ("",))[0]
        else:
            continue
        if value:
            values[kind] = value
    for name in options.get("env", ()):
        if secret := read_secret(paths, str(name)):
            values[f"env:{name}"] = secret[0]
    return values


def _read_file(paths: Paths, path: str) -> str:
    try:
        return read_text(
            paths.resolve(path),
            path,
            "Give uid 1000 a text file, or remove its key from the manifest.",
        )
    except FileNotFoundError:
        return ""
