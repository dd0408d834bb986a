"""Linux kernel interfaces that the standard library does not offer. One interface per module,
standard library only.
"""
