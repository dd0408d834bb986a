"""agentbox: the room that autonomous coding agents live in. One manifest, one plan, one image."""

__version__ = "0.1.0"
