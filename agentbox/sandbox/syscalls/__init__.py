"""System calls of an agent that its reaper answers through seccomp notification. One module per
kind of call.
"""
