"""The launcher and the reaper: from a request to a process tree, and to its end. Only code of these
single-threaded programs and of their client goes in.
"""
