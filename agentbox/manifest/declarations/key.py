"""How a table declares its keys: `key`, `table` and `entries` set a dataclass field, and
`declared` reads what they set. Standard library only: the boot imports this.
"""

from collections.abc import Mapping
from dataclasses import Field, field
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

Apply = Literal["live", "boot", "recreate", "rebuild"]
"""What a change of a key requires, from least to most."""

APPLY_ORDER: Final[tuple[Apply, ...]] = ("live", "boot", "recreate", "rebuild")

_DECLARATION: Final = "declaration"
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Not(NamedTuple):
    """In `when`: every value but these."""

    values: tuple[Any, ...]


When = Mapping[str, Any]
"""Key -> the value, the tuple of values, or the `Not` with which a key is used. `.use` is the key
`use` of the same table; other keys are full paths."""

ENABLED: Final[When] = {".enabled": True}


class Declaration(NamedTuple):
    """What is declared about a key or a table. `needs`: keys that must be written beside it.
    `inherits`: the table from which absent keys take their effective values. `names`: the allowed
    names of map entries, with their texts; empty = any name.
    """

    apply: Apply = "live"
    doc: str = ""
    unit: str = ""
    when: When = _NOTHING
    required: bool = False
    needs: tuple[str, ...] = ()
    inherits: str = ""
    names: Mapping[str, str] = _NOTHING


def key(
    default: Any,
    apply: Apply,
    *,
    doc: str,
    unit: str = "",
    when: When | None = None,
    required: bool = False,
    needs: tuple[str, ...] = (),
) -> Any:
    """Declares a key: its default, what a change of it requires, its text. A required key has a
    placeholder as default. Sizes are in bytes and keys that end in `_seconds` in seconds; others
    name their unit.
    """
    declaration = Declaration(
        apply=apply, doc=doc, unit=unit, when=when or _NOTHING, required=required, needs=needs
    )
    return field(default=default, metadata={_DECLARATION: declaration})


def table(kind: type, *, doc: str = "", when: When | None = None, inherits: str = "") -> Any:
    """Declares a table. `doc` replaces the docstring of `kind`; `when` applies to all of its keys,
    and `.x` in it is a key of the parent.
    """
    declaration = Declaration(doc=doc, when=when or _NOTHING, inherits=inherits)
    return field(default_factory=kind, metadata={_DECLARATION: declaration})


def entries(
    doc: str,
    *,
    names: Mapping[str, str] | None = None,
    apply: Apply = "live",
    when: When | None = None,
) -> Any:
    """Declares a map from names to tables. `apply` is of the presence of an entry in `names`;
    `when` applies to all keys of an entry, and `.x` in it is a key of the parent.
    """
    declaration = Declaration(doc=doc, names=names or _NOTHING, apply=apply, when=when or _NOTHING)
    return field(default_factory=dict, metadata={_DECLARATION: declaration})


def declared(item: Field[Any]) -> Declaration:
    """The declaration of a dataclass field. Raises KeyError if it has none."""
    declaration: Declaration = item.metadata[_DECLARATION]
    return declaration
