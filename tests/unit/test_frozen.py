"""Dataclasses whose methods are compiled at their first use behave as those of the library."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import pytest

from agentbox.core.frozen import frozen, frozen_slots

STANDARD: dict[str, Callable[[type], type]] = {
    "frozen": dataclass(frozen=True, kw_only=True),
    "frozen_slots": dataclass(frozen=True, kw_only=True, slots=True),
}
OURS: dict[str, Callable[[type], type]] = {"frozen": frozen, "frozen_slots": frozen_slots}


@frozen_slots
class Stored:
    """Of this module, so that pickle finds it."""

    name: str
    rows: tuple[int, ...] = ()


def kinds(name: str) -> tuple[type[Any], type[Any]]:
    """The same class made by each of both."""

    def make(decorate: Callable[[type], type]) -> type[Any]:
        class Point:
            """A point."""

            x: int
            y: int = 2
            names: list[str] = field(default_factory=list, compare=False)
            hidden: str = field(default="", repr=False)

            def __post_init__(self) -> None:
                if self.x < 0:
                    raise ValueError("x is negative")

        return decorate(Point)

    return make(OURS[name]), make(STANDARD[name])


@pytest.mark.parametrize("name", OURS)
def test_objects_are_equal_hashed_shown_and_replaced_alike(name: str) -> None:
    """Whatever is called first; factories are called for each object; `__post_init__` is called."""
    for act in (repr, hash, lambda one: one == replace(one), lambda one: one != replace(one, x=9)):
        made, standard = kinds(name)
        first, second = made(x=1), standard(x=1)
        assert act(first) == act(second)
        assert first.names is not made(x=1).names
        assert first != made(x=2)
        assert [item.name for item in fields(first)] == [item.name for item in fields(second)]
        with pytest.raises(ValueError, match="negative"):
            made(x=-1)


@pytest.mark.parametrize("name", OURS)
def test_wrong_arguments_and_changes_are_refused_alike(name: str) -> None:
    """With the error of the standard library."""
    made, standard = kinds(name)
    for arguments, named in (((), {}), ((1,), {}), ((), {"x": 1, "z": 1})):
        with pytest.raises(TypeError) as ours:
            made(*arguments, **named)
        with pytest.raises(TypeError) as theirs:
            standard(*arguments, **named)
        assert str(ours.value) == str(theirs.value)
    one = made(x=1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del one.x
    assert one.x == 1


def test_copies_pickles_subclasses_and_cached_properties() -> None:
    """Slots are kept by copies and pickles; a subclass has the fields of its base; methods of the
    class itself stay."""
    one = Stored(name="a", rows=(1, 2))
    assert copy.deepcopy(one) == copy.copy(one) == pickle.loads(pickle.dumps(one)) == one

    @frozen
    class Base:
        """With a property that is computed once."""

        a: int

        @cached_property
        def double(self) -> int:
            return 2 * self.a

    @frozen
    class Child(Base):
        """With its own words."""

        b: int = 3

        def __repr__(self) -> str:
            return "child"

    child = Child(a=1)
    assert (child.a, child.b, child.double, repr(child)) == (1, 3, 2, "child")
    assert child != Base(a=1)
    assert child == Child(a=1)
