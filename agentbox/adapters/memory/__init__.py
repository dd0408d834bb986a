"""The memory slot."""
