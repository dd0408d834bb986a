"""The types of manifest keys (docs/manifest.md) as Python types, and `key`, which declares a key of
a table. An `Annotated` type name refers to an entry in `schema/sections/common.json`; a `Range`
repeats the schema's bounds. A test compares both. Standard library only: the boot imports this.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

Apply = Literal["live", "boot", "recreate", "rebuild"]
"""What a change of a key requires, from least to most."""

APPLY_ORDER: Final[tuple[Apply, ...]] = ("live", "boot", "recreate", "rebuild")

INHERITS: Final = "inherits"
"""Field metadata: the table from which absent keys inherit their effective values."""

_UNITS: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


class Size(str):
    """A size as written: `<n>KiB`, `<n>MiB`, `<n>GiB` or `<n>TiB`."""

    __slots__ = ()

    @property
    def bytes(self) -> int:
        """The size in bytes. Raises ValueError for an invalid size."""
        return size_bytes(self)


def size_bytes(text: str) -> int:
    """`"4GiB"` -> 4294967296. Raises ValueError unless it is a whole number with a binary unit."""
    number, unit = text[:-3], text[-3:]
    if unit not in _UNITS or not number.isascii() or not number.isdigit() or number.startswith("0"):
        raise ValueError(f"not a size: {text!r}")
    return int(number) * _UNITS[unit]


@dataclass(frozen=True)
class TypeName:
    """The name of a `$defs` entry of the common schema."""

    name: str


@dataclass(frozen=True)
class Range:
    """Inclusive bounds of a number."""

    minimum: float
    maximum: float


@dataclass(frozen=True)
class TextPattern:
    """A pattern used by one key only."""

    text: str


@dataclass(frozen=True)
class Unique:
    """A list without duplicates."""


@dataclass(frozen=True)
class MinItems:
    """The minimum number of items of a list."""

    items: int


Port = Annotated[int, TypeName("port")]
Name = Annotated[str, TypeName("name")]
Env = Annotated[str, TypeName("env")]
BoxPath = Annotated[str, TypeName("path")]
HttpUrl = Annotated[str, TypeName("http_url")]
WsUrl = Annotated[str, TypeName("ws_url")]
IpLiteral = Annotated[str, TypeName("ip")]
Digest = Annotated[str, TypeName("sha256")]
PackageName = Annotated[str, TypeName("package")]
Variable = Annotated[str, TypeName("variable")]
Glob = Annotated[str, TypeName("glob")]
Argument = Annotated[str, TypeName("argument")]
CommandLine = Annotated[tuple[Argument, ...], TypeName("command_line")]
NameOrNone = Annotated[str, TypeName("name_or_none")]


def key(default: Any, apply: Apply, *, required: bool = False) -> Any:
    """Declares a key of a table: its default, and what a change of it requires. A required key has
    a placeholder as default.
    """
    return field(default=default, metadata={"apply": apply, "required": required})
