"""When a key is used: the `when` of its declaration, with full key paths."""

from collections.abc import Mapping
from functools import cache

from agentbox.manifest.declarations.key_path import fill_entry, split_names
from agentbox.manifest.declarations.specs import KeyCondition
from agentbox.manifest.keys import generic_path, keys


def conditions_of(path: str) -> tuple[KeyCondition, ...]:
    """The conditions of a real key path, with its map entry filled in."""
    pattern = generic_path(path)
    names = [
        name
        for name, segment in zip(split_names(path), split_names(pattern), strict=True)
        if segment == "*"
    ]
    required = conditions().get(pattern, ())
    return (
        tuple(item._replace(key=fill_entry(item.key, names[0])) for item in required)
        if names
        else required
    )


@cache
def conditions() -> Mapping[str, tuple[KeyCondition, ...]]:
    """Key path -> conditions that must all hold for the key to be used. Keys that are always used
    are absent. Names of map entries are `*` on both sides; `conditions_of` fills one in.
    """
    return {path: spec.when for path, spec in keys().items() if spec.when}
