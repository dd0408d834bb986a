"""Results that a store could not be given yet, kept in order on disk. Only the outbox and its
metrics go in.
"""
