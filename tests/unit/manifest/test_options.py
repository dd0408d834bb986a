"""Options records: what an implementation of a slot gets instead of the text of its keys."""

from dataclasses import FrozenInstanceError

import pytest

from agentbox.manifest.declarations.key import key
from agentbox.manifest.declarations.options import Options
from agentbox.manifest.slot_options import IMPLEMENTATIONS, BridgeOptions, ProcessOptions
from agentbox.manifest.tables.slots import AdaptersTable
from agentbox.manifest.types import Size
from agentbox.plan.model import SlotPlan
from agentbox.plan.slots import slot_options


class Base(Options):
    """Of a third party."""

    quota: Size = key(Size("1MiB"), "live", doc="All.")


class Derived(Base):
    """With a key of its own, and another default."""

    quota: Size = key(Size("2MiB"), "live", doc="All.")
    words: tuple[str, ...] = key((), "live", doc="Words.")


def test_a_record_has_every_key() -> None:
    """Those of the bases too; what is absent has its default, a size is in bytes, a list a tuple."""
    assert (Base().quota, Derived().quota, Derived.names()) == (
        1 << 20,
        2 << 20,
        ("quota", "words"),
    )
    found = Derived(quota=5, words=["a"])
    assert (found.quota, found.words) == (5, ("a",))
    assert found == Derived(quota=5, words=("a",)) != found.changed(quota=6)
    assert len({found, Derived(quota=5, words=("a",)), Base(quota=5)}) == 2


def test_a_record_refuses_what_it_has_not() -> None:
    """An unknown name, and a change in place."""
    with pytest.raises(TypeError, match="Base has no key words"):
        Base(words=())
    with pytest.raises(FrozenInstanceError):
        Base().quota = Size("1MiB")  # type: ignore[misc]


def test_options_of_another_class_are_its_defaults() -> None:
    """An orchestrator behind a bridge has no grace period of its own."""
    mine = ProcessOptions(grace_seconds=9)
    assert ProcessOptions.of(mine) is mine
    assert ProcessOptions.of(BridgeOptions()) == ProcessOptions()
    assert Base.of(Derived(quota=7)).quota == 7


@pytest.mark.parametrize(
    ("slot", "use"), [(slot, use) for slot, known in IMPLEMENTATIONS.items() for use in known]
)
def test_the_default_is_that_of_the_table(slot: str, use: str) -> None:
    """An option that a plan lacks has the default that the manifest's table states for its key."""
    table, found = (
        getattr(AdaptersTable(), slot),
        slot_options({slot: SlotPlan(use=use, required=False)}, slot),
    )
    assert {name: getattr(table, name) for name in found.names()} == vars(found)
