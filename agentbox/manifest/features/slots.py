"""The class of a slot's implementation: local, external, or off, as in the prefix of its name."""

from typing import Final, Literal, get_args

SlotClass = Literal["local", "external", "off"]

_CLASSES: Final = {str(name): name for name in get_args(SlotClass)}


def slot_class(use: str) -> SlotClass:
    """The class of the implementation `use`, as in `external-http`. Raises KeyError for an unknown
    class.
    """
    result: SlotClass = _CLASSES[use.partition("-")[0]]
    return result
