"""Tasks: one run of a program, with a bead as its receipt. Everything that brings a task to its end
goes in.
"""
