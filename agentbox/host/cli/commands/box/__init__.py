"""Verbs about the box as a whole. One file a verb."""
