"""Patterns of policies: parse, match, and the relations `covers` and `overlaps`. One kind of
pattern per module.
"""
