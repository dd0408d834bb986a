"""The only reader of agentbox.toml."""

from agentbox.manifest.findings import Finding, Related
from agentbox.manifest.keys import (
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
