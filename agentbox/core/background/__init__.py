"""Helpers to run background work: asyncio tasks, and threads for blocking calls. The work itself
belongs to its owner.
"""
