"""The engine `archive`: a snapshot is one deterministic tar, compressed and encrypted, and its
head.
"""
