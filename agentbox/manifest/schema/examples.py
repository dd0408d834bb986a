"""For remedies: the noun of each named type, and a valid example in TOML."""

from collections.abc import Mapping
from typing import Final

from agentbox.manifest.types import form_of, types_by_name

EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    name: (form.noun, form.example)
    for name, hint in types_by_name().items()
    if (form := form_of(hint))
}
