"""One entry of a feature's `npm` list: `NAME`, `NAME@RANGE`, or an npm alias
`DIRECTORY@npm:NAME@RANGE`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

CPUS: Final = {"amd64": "x64", "arm64": "arm64"}  # Debian's architecture -> npm's
_SPEC: Final = re.compile(r"(?P<name>@?[^@]+)(?:@(?P<range>.+))?")
_ALIAS: Final = "npm:"


@dataclass(frozen=True)
class NpmSpec:
    """`directory` is the path below node_modules, `range` a version, a range or a tag."""

    directory: str
    name: str
    range: str

    def specifier(self, version: str) -> str:
        """The value for package.json, at this version or range."""
        return version if self.directory == self.name else f"{_ALIAS}{self.name}@{version}"


def npm_spec(text: str) -> NpmSpec:
    """Parses one entry without `{cpu}`. Raises ValueError if it is invalid."""
    match = _SPEC.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid npm package: {text}")
    directory, version_range = match["name"], match["range"] or "latest"
    if version_range.startswith(_ALIAS):
        return NpmSpec(directory, *_aliased(version_range.removeprefix(_ALIAS)))
    return NpmSpec(directory, directory, version_range)


def npm_specs(entries: Iterable[str], arch: str) -> tuple[NpmSpec, ...]:
    """The entries for one Debian architecture, with `{cpu}` replaced by npm's name for it."""
    return tuple(npm_spec(text.replace("{cpu}", CPUS[arch])) for text in entries)


def _aliased(text: str) -> tuple[str, str]:
    spec = npm_spec(text)
    return spec.name, spec.range
