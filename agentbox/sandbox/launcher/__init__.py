"""The launcher and the reaper: from a spawn request to the end of the process tree. Only code of
these single-threaded programs and of their client belongs here.
"""
