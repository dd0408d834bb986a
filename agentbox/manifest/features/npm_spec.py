"""One entry of a feature's `npm` list: `NAME`, `NAME@RANGE`, or `FOLDER@npm:NAME@RANGE` as npm writes an alias."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

CPUS: Final = {"amd64": "x64", "arm64": "arm64"}  # Debian's architecture -> npm's
_SPEC: Final = re.compile(r"(?P<name>@?[^@]+)(?:@(?P<range>.+))?")
_ALIAS: Final = "npm:"


@dataclass(frozen=True)
class NpmSpec:
    """`folder` is where below node_modules it is unpacked, `range` a version, a range or a tag."""

    folder: str
    name: str
    range: str

    def at(self, version: str) -> str:
        """What package.json says of it, at this version or range."""
        return version if self.folder == self.name else f"{_ALIAS}{self.name}@{version}"


def npm_spec(text: str) -> NpmSpec:
    """Parses one entry without `{cpu}`. Raises ValueError for what is none."""
    found = _SPEC.fullmatch(text)
    if found is None:
        raise ValueError(f"no npm package: {text}")
    folder, wanted = found["name"], found["range"] or "latest"
    if wanted.startswith(_ALIAS):
        return NpmSpec(folder, *_without_folder(wanted.removeprefix(_ALIAS)))
    return NpmSpec(folder, folder, wanted)


def npm_specs(listed: Iterable[str], arch: str) -> tuple[NpmSpec, ...]:
    """The entries for one Debian architecture: `{cpu}` in them is npm's name of it."""
    return tuple(npm_spec(text.replace("{cpu}", CPUS[arch])) for text in listed)


def _without_folder(text: str) -> tuple[str, str]:
    real = npm_spec(text)
    return real.name, real.range
