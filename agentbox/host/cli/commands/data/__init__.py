"""Verbs about what a box stores. One file a verb."""
