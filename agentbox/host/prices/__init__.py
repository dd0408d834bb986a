"""Prices of models from a maintained table, for the manifest."""
