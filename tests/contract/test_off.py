"""C10: `off` of every slot refuses each method with AdapterDisabled; as the fallback of a slot that is down, with SlotUnavailable."""

import inspect

import pytest

from agentbox.adapters.runtime.adapter import SLOTS, Deps, SlotConfig
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.registry import resolve
from agentbox.contracts.slot_operations import CONTRACTS, METHODS
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterDisabled, SlotUnavailable
from agentbox.manifest.declarations.options import Options


async def outcome(adapter, name):
    found = getattr(adapter, name)()
    if inspect.isawaitable(found):
        return await found
    return await anext(found)


def made(slot, tmp_path, clock, **arguments):
    cfg = SlotConfig(
        slot=slot,
        use="local-x" if arguments else "off",
        required=False,
        paths=Paths(tmp_path),
        options=Options(),
    )
    return resolve(slot, "off")(cfg, Deps(metrics=Metrics(), clock=clock), **arguments)


@pytest.mark.parametrize("slot", SLOTS)
async def test_C10_every_method_is_disabled(slot, tmp_path, clock):
    """Each method of the Protocol; open, close and health succeed, before and after."""
    adapter = made(slot, tmp_path, clock)
    for _ in range(2):
        await adapter.open(Deadline.after(1))
        for spec in METHODS[slot]:
            with pytest.raises(AdapterDisabled) as caught:
                await outcome(adapter, spec.name)
            assert caught.value.members == {"slot": slot}
        health = await adapter.health()
        assert (health.state, health.detail) == ("ok", "off")
        await adapter.close()


@pytest.mark.parametrize("slot", SLOTS)
async def test_C10_a_stand_in_says_when_it_is_tried_again(slot, tmp_path, clock):
    """SlotUnavailable with the configured class, since when, and the remaining seconds."""
    adapter = made(
        slot, tmp_path, clock, reason="down", since=clock.now(), retry_at=clock.monotonic() + 30
    )
    clock.advance(10)
    for spec in METHODS[slot]:
        with pytest.raises(SlotUnavailable) as caught:
            await outcome(adapter, spec.name)
        assert caught.value.members == {
            "slot": slot,
            "impl": "local-x",
            "since": "2026-01-01T00:00:00.000Z",
        }
        assert caught.value.retry_after == 20


@pytest.mark.parametrize("slot", SLOTS)
def test_C10_off_has_the_signature_of_the_contract(slot, tmp_path, clock):
    """Every public name of the Protocol exists, and streams are streams."""
    adapter = made(slot, tmp_path, clock)
    for spec in METHODS[slot]:
        declared = getattr(CONTRACTS[slot], spec.name)
        assert inspect.iscoroutinefunction(
            getattr(adapter, spec.name)
        ) == inspect.iscoroutinefunction(declared)
