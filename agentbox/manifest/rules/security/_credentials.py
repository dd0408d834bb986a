"""Variables that must contain a credential, and what needs them."""

from collections.abc import Iterator
from typing import Final

from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.tables.slots import SLOTS

READS: Final = (
    "mesh.mode",
    "mesh.token_env",
    "mesh.token_file",
    *(f"adapters.{slot}.{name}" for slot in SLOTS for name in ("use", "token_env")),
    "providers",
    "providers.*.enabled",
    "providers.*.env_var",
)


def credentials(context: RuleContext) -> Iterator[tuple[str, str]]:
    """The key that names the variable, and what needs it."""
    if (
        context["mesh.mode"] != "standalone"
        and context["mesh.token_env"]
        and not context["mesh.token_file"]
    ):
        yield "mesh.token_env", "the mesh"
    for slot in SLOTS:
        key = f"adapters.{slot}.token_env"
        if context.slot_class(slot) == "external" and context[key]:
            yield key, f"the slot {slot}"
    for name in context.names("providers"):
        if context[f"providers.{name}.enabled"] and context[f"providers.{name}.env_var"]:
            yield f"providers.{name}.env_var", f"the provider {name}"
