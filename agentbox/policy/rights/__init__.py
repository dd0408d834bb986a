"""What an agent holds: rights issued at its start, restricted to its parent's, and revoked. Records
and pure decisions about them go in.
"""
