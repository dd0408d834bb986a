"""The base class of options records. Standard library only."""

from collections.abc import Iterator
from dataclasses import Field, FrozenInstanceError
from inspect import get_annotations
from typing import Any, ClassVar, Self, dataclass_transform

from agentbox.manifest.types import Size


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Options:
    """What an implementation of a slot reads: a frozen record of the keys that its class and their
    bases declare with `key`. An absent key has its default; sizes are their bytes. It is no
    dataclass: creating one for each class would slow every start.
    """

    _keys: ClassVar[dict[str, tuple[Any, Field[Any]]]] = {}  # annotation and declaration

    def __init_subclass__(cls) -> None:
        cls._keys = {
            name: (hint, getattr(cls, name))
            for base in reversed(cls.__mro__)
            for name, hint in declared_keys(base)
        }

    def __init__(self, **values: Any) -> None:
        """From values of the plan. Raises TypeError for an unknown name."""
        if unknown := values.keys() - self._keys:
            raise TypeError(f"{type(self).__name__} has no key {min(unknown)}")
        for name, (hint, item) in self._keys.items():
            vars(self)[name] = _value(hint, values.get(name, item.default))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The keys; those of the last base come first."""
        return tuple(cls._keys)

    @classmethod
    def of(cls, options: "Options") -> Self:
        """The options themselves if they have the keys of this class, else its defaults."""
        return options if isinstance(options, cls) else cls()

    def changed(self, **values: Any) -> Self:
        """A copy with other values."""
        return type(self)(**{**vars(self), **values})

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"


def declared_keys(kind: type) -> Iterator[tuple[str, Any]]:
    """The keys that a class itself declares, with their annotations."""
    for name, hint in get_annotations(kind).items():
        if isinstance(vars(kind).get(name), Field):
            yield name, hint


def _value(hint: Any, value: Any) -> Any:
    if hint is Size:
        return int(value)
    return tuple(value) if isinstance(value, list) else value
