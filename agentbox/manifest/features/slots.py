"""Which class an implementation of a slot belongs to: local, external, or off. Its name begins with it."""

from typing import Final, Literal, get_args

SlotClass = Literal["local", "external", "off"]

_CLASSES: Final = {str(name): name for name in get_args(SlotClass)}


def slot_class(use: str) -> SlotClass:
    """The class of the implementation `use`, as in `external-http`. Raises KeyError for a name of no class."""
    result: SlotClass = _CLASSES[use.partition("-")[0]]
    return result
