"""Locked files in the Nix store: paths, hashes, adding, GC roots. Only code that uses the store
belongs here.
"""
