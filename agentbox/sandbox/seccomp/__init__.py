"""The seccomp filters and the assembler that builds them. Only code that makes a BPF program goes
in.
"""
