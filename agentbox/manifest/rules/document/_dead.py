"""Keys that are written and not read."""

from collections.abc import Iterator

from agentbox.manifest.conditions import Condition, conditions_of
from agentbox.manifest.rules.context import Unusable, View


def dead_keys(view: View) -> Iterator[tuple[str, tuple[Condition, ...]]]:
    """Each such key with the conditions that fail. A key whose condition cannot be read is left out."""
    view.read.add("**")
    for key in view.given.values:
        if key not in view.given.manifest.where or not (wanted := conditions_of(key)):
            continue
        try:
            view[key]
            failed = tuple(condition for condition in wanted if not condition.holds(view[condition.key]))
        except Unusable:
            continue
        if failed:
            yield key, failed
