"""The options of OneFilePods: the keys that it reads, and their defaults."""

from agentbox.manifest.declarations.key import key
from agentbox.manifest.declarations.options import Options
from agentbox.manifest.types import Size


class OneFileOptions(Options):
    """Options of pods in one file."""

    max_object: Size = key(Size("1MiB"), "live", doc="One object.")
    quota: Size = key(Size("1GiB"), "live", doc="All objects together.")
    quota_objects: int = key(1_000_000, "live", doc="Number of objects.")
