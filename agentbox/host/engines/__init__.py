"""Engines start, stop and inspect a box. Shared code is here; each engine is a package."""
