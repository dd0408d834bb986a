"""The beads slot."""
