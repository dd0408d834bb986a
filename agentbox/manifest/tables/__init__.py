"""The tables of a manifest as dataclasses, one file a top-level table. Only declarations of keys go
in, no behaviour.
"""
