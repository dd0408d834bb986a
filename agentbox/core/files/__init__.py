"""Atomic file writes: a reader sees the old content or the new one. Functions of a path and its
content only.
"""
