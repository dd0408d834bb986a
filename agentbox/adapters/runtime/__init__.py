"""Shared by all adapters: configuration, life cycle, call pipeline and metrics. Code for a single
slot does not belong here."""
