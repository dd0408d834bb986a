"""Tasks: one run of a program, with a bead as its record. Everything that completes a task belongs
here.
"""
