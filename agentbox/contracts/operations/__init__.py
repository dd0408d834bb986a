"""The operations of each resource: one row for each method of its Protocol."""
