"""The table of implementations, the table of methods, and the manifest agree."""

import inspect
from typing import get_args

import pytest
from agentbox_testkit.local_store import options_of

from agentbox.adapters.runtime.adapter import SLOTS
from agentbox.adapters.runtime.registry import allowed, resolve
from agentbox.contracts.routes.resource import protocol_methods
from agentbox.contracts.slot_operations import CONTRACTS, METHODS
from agentbox.core.paths import CHECKOUT
from agentbox.core.slot_errors import UnknownAdapterImpl
from agentbox.manifest.keys import keys
from agentbox.manifest.slot_options import options_class


@pytest.mark.parametrize("slot", SLOTS)
def test_registry_is_the_choice_of_the_manifest(slot):
    """The same names in the same order."""
    use = keys()[f"adapters.{slot}.use"].hint
    assert list(allowed(slot)) == list(get_args(use))


@pytest.mark.parametrize("slot", SLOTS)
def test_registry_is_the_table_of_the_page(slot):
    """docs/contracts/README.md names each class."""
    rows = [
        row.split(" | ") for row in (CHECKOUT / "docs/contracts/README.md").read_text().splitlines()
    ]
    (named,) = [row[2] for row in rows if row[0] == f"| {slot}"]
    assert named.split(", ") == [f"`{impl}`" for impl in allowed(slot)]


@pytest.mark.parametrize(
    ("slot", "impl"), [(slot, impl) for slot in SLOTS for impl in allowed(slot)]
)
def test_a_shipped_class_says_what_it_is(slot, impl):
    """Its slot and name are those of its row, and it has each method of the Protocol with the same parameters."""
    kind = resolve(slot, impl)
    assert (kind.slot, kind.impl) == (slot, impl)
    if impl != "off":
        for name, declared in protocol_methods(CONTRACTS[slot]).items():
            ours = inspect.signature(getattr(kind, name)).parameters
            wanted = inspect.signature(declared).parameters
            assert [(p.name, p.kind, p.default) for p in ours.values()] == [
                (p.name, p.kind, p.default) for p in wanted.values()
            ]


def test_a_use_without_a_class_is_refused_by_name():
    """Exit 1, and what may be written instead."""
    with pytest.raises(UnknownAdapterImpl) as caught:
        resolve("beads", "sqlte")
    assert caught.value.message == (
        'adapters.beads.use = "sqlte" is unknown; allowed: local-sqlite, external-http, external-pg, off'
    )
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("slot", SLOTS)
def test_every_method_has_a_row_and_every_row_a_method(slot):
    """And a row is correct about whether the method streams."""
    declared = protocol_methods(CONTRACTS[slot])
    assert [spec.name for spec in METHODS[slot]] == list(declared)
    for spec in METHODS[slot]:
        assert spec.is_stream != inspect.iscoroutinefunction(declared[spec.name])


@pytest.mark.parametrize("slot", SLOTS)
def test_pointers_begin_at_an_argument(slot):
    """Each text field and identifier names a parameter of its method."""
    for spec in METHODS[slot]:
        parameters = inspect.signature(getattr(CONTRACTS[slot], spec.name)).parameters
        for pointer in (*spec.redact, *spec.identifiers):
            assert pointer.split("/")[1] in parameters


@pytest.mark.parametrize(
    ("slot", "impl"), [(slot, impl) for slot in SLOTS for impl in allowed(slot)]
)
def test_a_shipped_class_reads_the_options_of_its_name(slot, impl):
    """The manifest decodes them by `use`, and the class annotates `cfg` with the same."""
    assert options_of(resolve(slot, impl)) is options_class(slot, impl)
