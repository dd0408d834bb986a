"""The tables of a manifest as dataclasses, one file per top-level table. Declarations of
keys only.
"""
