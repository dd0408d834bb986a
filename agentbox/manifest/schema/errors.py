"""What a validation error of the schema means for the person who wrote the manifest: kind, message, remedy."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from agentbox.manifest.findings import Kind
from agentbox.manifest.keypath import KeyPath, to_text
from agentbox.manifest.schema.bundle import properties, resolved
from agentbox.manifest.schema.examples import EXAMPLES
from agentbox.manifest.suggest import nearest
from agentbox.manifest.toml_text import WANTED, as_seconds, as_size, show, spell, type_name

if TYPE_CHECKING:
    from jsonschema import ValidationError

_RENAMED: Final = {"federation": "mesh"}


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """One place that the schema refuses."""

    path: KeyPath
    kind: Kind
    message: str
    remedy: str
    withdrawn: tuple[KeyPath, ...] = ()
    related: tuple[KeyPath, ...] = ()


@dataclass(frozen=True)
class Fault:
    """What the validator found: the keyword that failed, its value, the schema around it, and the refused value."""

    keyword: str
    wanted: Any
    schema: Mapping[str, Any]
    path: KeyPath
    value: Any
    names: bool = False
    """True when a name of a map was refused; it is the value then."""

    @classmethod
    def of(cls, error: "ValidationError") -> "Fault":
        """The same as the library says it."""
        schema: Any = error.schema
        names = "propertyNames" in error.absolute_schema_path
        path = (*error.absolute_path, *((error.instance,) if names else ()))
        return cls(str(error.validator), error.validator_value, schema, path, error.instance, names)


def explain(fault: Fault) -> Iterator[Refusal]:
    """The refusals that an error stands for: one, but for several unknown or missing keys of a table."""
    return _bad_name(fault) if fault.names else _BY_KEYWORD.get(fault.keyword, _bad_value)(fault)


def _key(path: KeyPath) -> KeyPath:
    """The key that holds the value: positions in a list at the end are dropped."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return path


def _value(path: KeyPath) -> KeyPath:
    """What is withdrawn: everything up to the first list."""
    cut = next((at for at, part in enumerate(path) if isinstance(part, int)), len(path))
    return path[:cut]


def _unknown(fault: Fault) -> Iterator[Refusal]:
    known = list(fault.schema["properties"])
    for name in fault.value:
        if name in known:
            continue
        path = (*fault.path, name)
        where = f"[{to_text(path[:-1])}]" if len(path) > 1 else "a manifest"
        yield Refusal(
            path=path,
            kind="unknown-key",
            message=f"`{name}` is no key of {where}",
            remedy=_suggest(name, known, path),
            withdrawn=(_value(path),),
        )


def _suggest(name: str, known: list[str], path: KeyPath) -> str:
    if len(path) == 1 and name in _RENAMED:
        return f"The table is called `[{_RENAMED[name]}]`."
    if near := nearest(name, known):
        return f"Did you mean {' or '.join(f'`{word}`' for word in near)}?"
    if tables := _homes().get(name):
        return f"`{name}` belongs to {' or '.join(f'`[{table}]`' for table in tables[:3])}."
    return f"Remove it. Keys here: {', '.join(known)}."


@cache
def _homes() -> Mapping[str, list[str]]:
    """Key name -> the tables that have it."""
    homes: dict[str, list[str]] = {}
    for path, _schema in properties():
        table, _, name = path.rpartition(".")
        if table and name != "*" and "exceptions" not in table:
            homes.setdefault(name, []).append(table.replace("*", "<name>"))
    return homes


def _missing(fault: Fault) -> Iterator[Refusal]:
    for name in fault.wanted:
        if name not in fault.value:
            path = (*fault.path, name)
            example = _example(resolved(fault.schema["properties"][name]))
            yield Refusal(
                path=path,
                kind="missing-key",
                message=f"`{name}` is required in {_table(path)} and is absent",
                remedy=f"Add `{name} = {example}`.",
                withdrawn=() if len(path) == 1 else (_value(path),),
            )


def _table(path: KeyPath) -> str:
    return f"[{to_text(path[:-1])}]" if len(path) > 1 else "a manifest"


def _dependent(fault: Fault) -> Iterator[Refusal]:
    written = [name for name in fault.wanted if name in fault.value]
    for name in sorted({need for trigger in written for need in fault.wanted[trigger]} - set(fault.value)):
        path = (*fault.path, name)
        yield Refusal(
            path=path,
            kind="missing-key",
            message=f"`{name}` is required in {_table(path)} as soon as `{written[0]}` is written",
            remedy=f'Add `{name} = "<why this is needed, 10 to 200 characters>"`.',
            withdrawn=(_value(path),),
        )


def _wrong_type(fault: Fault) -> Iterator[Refusal]:
    path, value = fault.path, fault.value
    if isinstance(value, str) and _is_seconds(path) and (seconds := as_seconds(value)) is not None:
        yield _unit(path, value, str(seconds), "time is a number of seconds")
        return
    wanted, fallback = WANTED[str(fault.wanted)]
    example = spell(fault.schema["default"]) if fault.schema.get("default") not in (None, "", []) else fallback
    if fault.schema.get("title") in EXAMPLES:
        wanted, example = EXAMPLES[fault.schema["title"]]
    yield Refusal(
        path=_key(path),
        kind="wrong-type",
        message=f"{_item(path)}{show_typed(value)} stands where {wanted} is wanted",
        remedy=f"Write {wanted}, such as `{example}`.",
        withdrawn=(_value(path),),
    )


def show_typed(value: Any) -> str:
    """`a string ("4")`; arrays and tables by their type alone."""
    return type_name(value) if isinstance(value, (dict, list)) else f"{type_name(value)} ({show(value)})"


def _is_seconds(path: KeyPath) -> bool:
    return bool(path) and isinstance(path[-1], str) and path[-1].endswith("_seconds")


def _item(path: KeyPath) -> str:
    return f"item {path[-1] + 1}: " if path and isinstance(path[-1], int) else ""


def _unit(path: KeyPath, value: str, corrected: str, why: str) -> Refusal:
    return Refusal(
        path=_key(path),
        kind="bad-unit",
        message=f"{_item(path)}{show(value)} is in another unit: {why}",
        remedy=f"Write `{corrected}`.",
        withdrawn=(_value(path),),
    )


def _bad_pattern(fault: Fault) -> Iterator[Refusal]:
    path, value = fault.path, fault.value
    title = str(fault.schema.get("title", ""))
    if title == "size" and (corrected := as_size(value)) is not None:
        yield _unit(path, value, f'"{corrected}"', "sizes are whole numbers of KiB, MiB, GiB or TiB")
        return
    if title in EXAMPLES:
        wanted, example = EXAMPLES[title]
        yield _refuse(fault, f"is not {wanted}", f"Write {wanted}, such as `{example}`.")
        return
    wanted = f"text that matches {fault.wanted}"
    yield _refuse(fault, f"is not {wanted}", f"Write {wanted}.")


def _bad_name(fault: Fault) -> Iterator[Refusal]:
    words = re.findall(r"[a-z0-9]+", fault.value.lower())
    meant = "-".join(words).lstrip("0123456789-")[:32] or "worker"
    yield _refuse(
        fault,
        "is no name: lower case letters, digits and hyphens, a letter first, at most 32",
        f"Write `[{to_text((*fault.path[:-1], meant))}]`.",
    )


def _refuse(fault: Fault, complaint: str, remedy: str) -> Refusal:
    path = fault.path
    return Refusal(
        path=_key(path),
        kind="bad-value",
        message=f"{_item(path)}{show(fault.value)} {complaint}",
        remedy=remedy,
        withdrawn=(_value(path),),
    )


def _bad_choice(fault: Fault) -> Iterator[Refusal]:
    allowed = [str(choice) for choice in fault.wanted]
    near = nearest(fault.value, allowed, limit=1) if isinstance(fault.value, str) else []
    hint = f"Did you mean {spell(near[0])}? " if near else ""
    yield _refuse(fault, "is not one of the allowed values", f"{hint}Allowed: {', '.join(map(spell, fault.wanted))}.")


def _bad_bound(fault: Fault) -> Iterator[Refusal]:
    low, high = fault.schema.get("minimum"), fault.schema.get("maximum")
    yield _refuse(fault, f"is outside {low} to {high}", f"Write a number from {low} to {high}.")


def _bad_const(fault: Fault) -> Iterator[Refusal]:
    known = spell(fault.wanted)
    yield _refuse(fault, f"is not understood: this agentbox understands {known}", f"Write `{known}`.")


def _too_few(fault: Fault) -> Iterator[Refusal]:
    yield _refuse(fault, "holds nothing", "Write at least one item.")


def _repeats(fault: Fault) -> Iterator[Refusal]:
    yield _refuse(fault, "holds an item twice", "Keep each item once.")


def _bad_value(fault: Fault) -> Iterator[Refusal]:
    yield _refuse(fault, f"is refused: {fault.keyword} {fault.wanted}", "Mend the value.")


def _example(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return spell(schema["const"])
    if schema.get("title") in EXAMPLES:
        return EXAMPLES[schema["title"]][1]
    if schema.get("type") == "object":
        return "{ " + ", ".join(f"{n} = {_example(schema['properties'][n])}" for n in schema.get("required", ())) + " }"
    return WANTED[str(schema.get("type", "string"))][1]


_BY_KEYWORD: Final[Mapping[str, Callable[[Fault], Iterator[Refusal]]]] = {
    "additionalProperties": _unknown,
    "required": _missing,
    "dependentRequired": _dependent,
    "type": _wrong_type,
    "pattern": _bad_pattern,
    "enum": _bad_choice,
    "const": _bad_const,
    "minimum": _bad_bound,
    "maximum": _bad_bound,
    "uniqueItems": _repeats,
    "minItems": _too_few,
}
