"""The only reader of agentbox.toml.

Bound at first use: programs that only judge what agents may do need patterns and policies, and no model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agentbox.manifest.findings import Finding, Related
    from agentbox.manifest.key_table import (
        KeySpec,
        apply_class,
        apply_classes,
        effective_values,
        flat,
        generic,
        keys,
        telling_values,
    )
    from agentbox.manifest.loader import Manifest, load, parse
    from agentbox.manifest.model import Model, plain
    from agentbox.manifest.shipped import config_dir, schema_dir
    from agentbox.manifest.words import Apply, Size, size_bytes

__all__ = [
    "Apply",
    "Finding",
    "KeySpec",
    "Manifest",
    "Model",
    "Related",
    "Size",
    "apply_class",
    "apply_classes",
    "config_dir",
    "effective_values",
    "flat",
    "generic",
    "keys",
    "load",
    "parse",
    "plain",
    "schema_dir",
    "size_bytes",
    "telling_values",
]

_FROM: Final = {
    "Apply": "words",
    "Finding": "findings",
    "KeySpec": "key_table",
    "Manifest": "loader",
    "Model": "model",
    "Related": "findings",
    "Size": "words",
    "apply_class": "key_table",
    "apply_classes": "key_table",
    "config_dir": "shipped",
    "effective_values": "key_table",
    "flat": "key_table",
    "generic": "key_table",
    "keys": "key_table",
    "load": "loader",
    "parse": "loader",
    "plain": "model",
    "schema_dir": "shipped",
    "size_bytes": "words",
    "telling_values": "key_table",
}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(name)
    return getattr(import_module(f"agentbox.manifest.{_FROM[name]}"), name)
