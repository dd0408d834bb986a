"""The pods slot: named binary objects in containers. One module per implementation, and their
shared decisions."""
