"""The pods slot: named binary objects in containers. One module an implementation, and the
decisions that they share.
"""
