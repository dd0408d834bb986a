"""The memory slot: searchable entries. One module per implementation and shared decisions."""
