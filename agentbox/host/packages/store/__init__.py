"""Locked files in the Nix store: paths, hashes, adding, GC roots. Only code that talks to the store
goes in.
"""
