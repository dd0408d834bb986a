"""The memory slot: searchable entries. One module an implementation, and the decisions that they
share.
"""
