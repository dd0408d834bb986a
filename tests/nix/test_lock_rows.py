"""The layer of a locked package follows from the packages that depend on it."""

import json

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.image.nix import read_nix
from agentbox.host.packages.lock_inputs import host_system
from agentbox.host.packages.store.nix_store import flat_path, recursive_path
from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM
from agentbox.plan.lockfile.reader import parse_lock

ARCH = ARCH_OF_SYSTEM[host_system()]


def value(expression: str) -> object:
    """The value of an expression over nix/lock.nix, called `lock`."""
    lock = f'import {CHECKOUT}/nix/lock.nix {{ root = {CHECKOUT}; arch = "{ARCH}"; }}'
    return json.loads(
        read_nix(["eval", "--impure", "--json", "--expr", f"let lock = {lock}; in {expression}"])
    )


@pytest.mark.parametrize(
    ("features", "layer"),
    [("core", "base"), ("core build", "base"), ("core codex", "base"), ("build", ""), ("codex", "f-codex"),
     ("build codex", "f-codex"), ("codex desktop", "f-shared")],
)  # fmt: skip
def test_the_layer_of_a_row(features: str, layer: str) -> None:
    """Core wins, one feature has its own layer, several share one, what only builds use is in none."""
    asked = " ".join(f'"{name}"' for name in features.split())
    assert value(f'lock.layerOf "base" {{ features = [ {asked} ]; }}') == layer


def test_rows_are_found_where_fetch_puts_them() -> None:
    """The store path of every row, and of the seed, is the one that the fetch computes."""
    locked = parse_lock(CHECKOUT / "agentbox.lock")
    paths = value(f'map (row: row.path.outPath) (lock.debian "{ARCH}" ++ lock.wheels "{ARCH}")')
    wheels = [row for row in locked.wheels if ARCH in row.arch]
    assert paths == [flat_path(row) for row in [*locked.debian[ARCH], *wheels]]
    assert value("lock.seed.outPath") == recursive_path(locked.seed[ARCH], "busybox")
