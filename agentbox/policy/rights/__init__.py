"""The rights of an agent: issued at its start, restricted to its parent's, revoked. Records and
pure decisions.
"""
