"""The table of stores, against every store that the package has."""

import importlib
import re

from agentbox.api.known_stores import STORES
from agentbox.core.paths import CHECKOUT

_DEFINED = re.compile(r"^MIGRATIONS\b[^=\n]*= ", re.MULTILINE)
_ELSEWHERE = ("postgres", "search")  # no file of a box; an index that is made again


def test_every_store_of_a_box_is_migrated() -> None:
    """A module that defines migrations of a file of the box is in the table."""
    known = {id(store.migrations) for store in STORES.values()}
    missing = []
    for path in (CHECKOUT / "agentbox").rglob("*.py"):
        if not _DEFINED.search(path.read_text()) or set(path.parts) & set(_ELSEWHERE):
            continue
        name = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
        if id(importlib.import_module(name).MIGRATIONS) not in known:
            missing.append(name)
    assert missing == []
    assert len(known) == len(STORES) == 11
