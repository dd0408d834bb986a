"""Files written so that a reader sees the old content or the new one, never a part. Only functions
of a path and its content go in.
"""
