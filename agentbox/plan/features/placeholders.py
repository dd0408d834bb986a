"""Placeholders in feature files: a manifest value, a property of the image, the file of a
password.
"""

import re
from collections.abc import Mapping
from typing import Any

from agentbox.plan.errors import PlanError

_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)*)\}")
PASSWORD = "password"
_CPU = {"x86_64-linux": "x64", "aarch64-linux": "arm64"}  # npm's names


def image_placeholders(system: str, python: str) -> dict[str, str]:
    """`{machine}` as in the kernel, `{cpu}` as in npm, `{python}` as in 3.13. Same as in
    nix/features.nix.
    """
    return {"machine": system.partition("-")[0], "cpu": _CPU[system], "python": python}


def fill_placeholders(value: Any, placeholders: Mapping[str, Any], feature: str) -> Any:
    """Replaces the placeholders in a feature's table: `{desktop.port}` becomes `5901`, true becomes
    `true`. Other braces (a count in a regular expression) are kept. Raises PlanError for an unknown
    placeholder, or one whose value is a list or a table.
    """
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: _text(match[1], placeholders, feature), value)
    if isinstance(value, Mapping):
        return {
            name: fill_placeholders(item, placeholders, feature) for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return tuple(fill_placeholders(item, placeholders, feature) for item in value)
    return value


def _text(name: str, placeholders: Mapping[str, Any], feature: str) -> str:
    value = placeholders.get(name)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise PlanError(
        f"cannot use feature {feature}: {{{name}}} has no value here",
        "use a manifest key with one value, {machine}, {cpu}, {python}, or {password} in a program "
        "that has one",
    )
