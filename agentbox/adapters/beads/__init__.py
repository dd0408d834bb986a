"""The beads slot: work items, leases, dependencies and schedules. One module per implementation,
and their shared decisions."""
