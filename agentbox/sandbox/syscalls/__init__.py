"""System calls of an agent that its reaper answers through seccomp notification. One file a kind of
call.
"""
