"""Generators of the reference pages in docs/. One page per module; each is written from the code
that it describes.
"""
