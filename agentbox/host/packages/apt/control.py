"""Debian control records: paragraphs of `Field: value`, and names in dependency fields."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAME = re.compile(r"^\s*([a-z0-9][a-z0-9+.\-]*)")


@dataclass(frozen=True)
class Package:
    """A package record of an archive. Each dependency is a tuple of alternatives, by name."""

    name: str
    version: str
    arch: str
    size: int
    sha256: str
    depends: tuple[tuple[str, ...], ...]
    provides: tuple[str, ...]


def parse_paragraphs(text: str) -> Iterator[dict[str, str]]:
    """Yield the paragraphs of a control file. Continued values keep line breaks; comments are
    dropped.
    """
    fields: dict[str, str] = {}
    last = ""
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if fields:
                yield fields
            fields, last = {}, ""
        elif line.startswith("#"):
            continue
        elif line[0] in " \t" and last:
            fields[last] += "\n" + line.strip()
        else:
            last, _, value = line.partition(":")
            fields[last] = value.strip()


def parse_package(fields: dict[str, str]) -> Package:
    """Return the record of a paragraph. Raises KeyError without size or SHA256."""
    dependencies = ", ".join(fields[key] for key in ("Pre-Depends", "Depends") if key in fields)
    return Package(
        name=fields["Package"],
        version=fields["Version"],
        arch=fields["Architecture"],
        size=int(fields["Size"]),
        sha256=fields["SHA256"],
        depends=tuple(_names(group, "|") for group in dependencies.split(",") if group.strip()),
        provides=_names(fields.get("Provides", ""), ","),
    )


def _names(text: str, separator: str) -> tuple[str, ...]:
    matches = (_NAME.match(item) for item in text.split(separator))
    return tuple(match[1] for match in matches if match)
