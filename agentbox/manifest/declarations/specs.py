"""The manifest's tables and keys as one tree, read once from the declarations. The schema, the key
table, the quick check and the conditions are derived from it. In paths, `*` stands for a map entry.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from agentbox.manifest.declarations.key import Apply, Declaration, Not, declared
from agentbox.manifest.model import Model, hints_of, plain
from agentbox.manifest.tables.slots import SlotTable
from agentbox.manifest.types import Name, Size


class KeyCondition(NamedTuple):
    """`key` must hold one of `values`, or, when `negated`, none of them."""

    key: str
    values: tuple[Any, ...]
    negated: bool = False

    def holds(self, value: Any) -> bool:
        """Whether the dependent key is used with that value."""
        return (value in self.values) != self.negated

    @property
    def is_switch(self) -> bool:
        """True for an on/off key; false for a choice of implementation or mode."""
        return all(isinstance(value, bool) for value in self.values) and bool(self.values)


class KeySpec(NamedTuple):
    """One key. `hint` is its annotation with constraints; `default` is plain data. An absent key
    has the value of the key `inherits`, if set. It is used while all of `when` hold.
    """

    path: str
    hint: Any
    default: Any
    apply: Apply
    required: bool = False
    inherits: str = ""
    doc: str = ""
    unit: str = ""
    when: tuple[KeyCondition, ...] = ()
    needs: tuple[str, ...] = ()


class TableSpec(NamedTuple):
    """One table, or one item of a list of tables, whose path is then empty."""

    path: str
    doc: str
    members: Mapping[str, "KeySpec | TableSpec | MapSpec"]

    @property
    def required(self) -> list[str]:
        """The required keys; in the manifest itself, the tables that have one."""
        return [
            name
            for name, member in self.members.items()
            if (isinstance(member, KeySpec) and member.required)
            or (not self.path and isinstance(member, TableSpec) and member.required)
        ]


class MapSpec(NamedTuple):
    """A table whose keys are names. `names`: those allowed, with their texts; empty = all
    of `name_hint`.
    """

    path: str
    doc: str
    entry: TableSpec
    names: Mapping[str, str]
    apply: Apply
    name_hint: Any = Name


@cache
def manifest_spec() -> TableSpec:
    """The whole manifest."""
    return _table(Model, "", Declaration(), ())


@cache
def item_spec(kind: type) -> TableSpec:
    """The table of one item of a list."""
    return _table(kind, "", Declaration(), ())


def key_specs(table: TableSpec) -> Iterator[KeySpec]:
    """All keys below a table, in order."""
    for member in table.members.values():
        if isinstance(member, KeySpec):
            yield member
        else:
            yield from key_specs(member.entry if isinstance(member, MapSpec) else member)


def _table(
    kind: type, path: str, declaration: Declaration, when: tuple[KeyCondition, ...]
) -> TableSpec:
    hints = hints_of(kind)
    return TableSpec(
        path,
        declaration.doc or " ".join((kind.__doc__ or "").split()),
        {
            item.name: _member(kind, item, hints[item.name], path, declaration.inherits, when)
            for item in fields(kind)
        },
    )


def _member(
    kind: type,
    item: Field[Any],
    hint: Any,
    table: str,
    inherited: str,
    when: tuple[KeyCondition, ...],
) -> KeySpec | TableSpec | MapSpec:
    path = f"{table}.{item.name}" if table else item.name
    declaration = declared(item)
    conditions = (*when, *_conditions(declaration, table), *_of_slot(kind, item.name, table))
    base = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(base) is Mapping:
        name_hint, kind_of_entry = get_args(base)
        entry = _table(kind_of_entry, f"{path}.*", Declaration(), conditions)
        hint_of_name = Name if name_hint is str else name_hint
        return MapSpec(
            path, declaration.doc, entry, declaration.names, declaration.apply, hint_of_name
        )
    if isinstance(base, type) and is_dataclass(base):
        return _table(base, path, declaration, conditions)
    return KeySpec(
        path=path,
        hint=hint,
        default=plain(item.default),
        apply=declaration.apply,
        required=declaration.required,
        inherits=f"{inherited}.{item.name}" if inherited else "",
        doc=declaration.doc,
        unit=declaration.unit or _unit(item.name, base),
        when=conditions,
        needs=declaration.needs,
    )


def _conditions(declaration: Declaration, table: str) -> Iterator[KeyCondition]:
    for key, values in declaration.when.items():
        path = f"{table}{key}" if key.startswith(".") else key
        if isinstance(values, Not):
            yield KeyCondition(path, values.values, negated=True)
        else:
            yield KeyCondition(path, values if isinstance(values, tuple) else (values,))


def _of_slot(kind: type, name: str, table: str) -> Iterator[KeyCondition]:
    """An option of a slot is used by the implementations whose options class has it."""
    if issubclass(kind, SlotTable) and name not in SlotTable.__annotations__:
        users = (use for use, options in kind.options.items() if name in options.names())
        yield KeyCondition(f"{table}.use", tuple(users))


def _unit(name: str, kind: Any) -> str:
    return "bytes" if kind is Size else "seconds" if name.endswith("_seconds") else ""
