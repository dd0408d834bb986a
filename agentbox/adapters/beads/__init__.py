"""The beads slot: work items, leases, dependencies, schedules. One module an implementation, and
the decisions that they share.
"""
