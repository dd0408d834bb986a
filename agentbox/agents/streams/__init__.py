"""Output of agents on disk: stored in order, read from any cursor."""
