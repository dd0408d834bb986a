"""For remedies: the noun of each named type, and a valid example in TOML."""

from collections.abc import Mapping
from typing import Final, get_args

from agentbox.manifest.declarations.constraints import TypeInfo
from agentbox.manifest.types import types_by_name

EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    name: (mark.noun, mark.example)
    for name, hint in types_by_name().items()
    for mark in get_args(hint)
    if isinstance(mark, TypeInfo)
}
