"""The seccomp filters and the assembler that builds them. Only code that creates a BPF program
belongs here.
"""
