"""Which variables must hold a credential, and who needs them."""

from collections.abc import Iterator

from agentbox.manifest.sections.adapters import SLOTS
from agentbox.rules.view import View


def credentials(view: View) -> Iterator[tuple[str, str]]:
    """The key that names the variable, and what needs it."""
    if view["mesh.mode"] != "standalone" and view["mesh.token_env"] and not view["mesh.token_file"]:
        yield "mesh.token_env", "the mesh"
    for slot in SLOTS:
        key = f"adapters.{slot}.token_env"
        if view.slot_class(slot) == "external" and view[key]:
            yield key, f"the slot {slot}"
