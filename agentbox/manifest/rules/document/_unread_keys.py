"""Keys that are written but not used."""

from collections.abc import Iterator

from agentbox.manifest.declarations.conditions import conditions_of
from agentbox.manifest.declarations.specs import KeyCondition
from agentbox.manifest.rules.context import InvalidValue, RuleContext


def unread_keys(context: RuleContext) -> Iterator[tuple[str, tuple[KeyCondition, ...]]]:
    """Each unused key with its failed conditions. A key whose condition cannot be read is
    omitted.
    """
    context.keys_read.add("**")
    for key in context.inputs.values:
        if key not in context.inputs.manifest.positions or not (required := conditions_of(key)):
            continue
        try:
            context[key]
            failed = tuple(
                condition for condition in required if not condition.holds(context[condition.key])
            )
        except InvalidValue:
            continue
        if failed:
            yield key, failed
