"""Work beside the caller: tasks of the event loop, and threads for calls that block. Only ways to
run any work go in, no work itself.
"""
